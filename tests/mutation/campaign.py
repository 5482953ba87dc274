"""Mutation campaign: plants faults in the modules that protect people, and runs the tests of each: `make mutants`.

Every fault is planted in a temporary copy of the repository. What only needs importing once is imported once: the tests
of each fault run in a forked process. Survivors that change nothing that could be seen are listed, with the reason, in
`equivalent.toml`; all others are reported with file, line and change, and make the command fail.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutation.planting import Fault, chosen

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
_COPIED = ("src", "tests", "pyproject.toml", "README.md")
_PRELOADED = ("numpy", "hypothesis", "sfumato", "sfumato.vault.vault", "sfumato.survey.surveys", "sfumato.service.app")
_LEAVE_OUT = "not slow and not server and not long"


def _of(file: str, *names: str) -> tuple[str, ...]:
    """Some tests of a file."""
    return tuple(f"tests/{file}.py::test_{name}" for name in names)


_COMPATIBILITY = "tests/compatibility/test_v0_1.py"
_SCHEMES = f"{_COMPATIBILITY}::test_a_scheme_makes_the_same_copy"
_CHAIN = (
    *_of("unit/ledger/test_access_log", "an_earlier_state_is_refused_by_a_process_that_saw_a_later_one"),
    *_of("unit/ledger/test_access_log", "every_access_is_recorded_with_who_and_from_where"),
    *_of(
        "unit/ledger/test_ledger",
        "equal_content_has_one_canonical_text",
        "an_intact_vault_verifies",
        "a_rewritten_history_is_found_without_the_key",
        "the_chain_is_computed_as_documented",
        "an_altered_entry_is_not_used",
        "a_noted_hash_reveals_a_rollback",
    ),
    *_of("unit/ledger/test_access_log", "a_shortened_log_is_found_and_not_continued"),
    *_of("unit/ledger/test_access_log", "old_records_are_erased_and_the_rest_is_still_authentic"),
)
_ERASURE = _of(
    "unit/vault/test_erasure",
    "what_is_still_held_is_said_with_the_reason",
    "uploads_answers_and_copies_that_are_held_are_listed",
    "an_erased_dataset_cannot_be_read_by_anybody",
    "an_erased_version_is_gone_and_its_copies_still_count",
    "an_erased_recipient_is_let_in_no_more",
)
_ANSWERS = _of(
    "unit/vault/test_erasure",
    "stored_answers_are_encrypted_and_cannot_be_moved_or_forged",
    "the_answers_to_an_erased_survey_are_gone",
)
_ENCRYPTION = (
    *_of(
        "unit/vault/test_encryption",
        "a_key_is_created_once",
        "the_table_is_read_as_it_was_and_adding_it_again_changes_nothing",
        "wrapped_keys_cannot_be_altered_or_exchanged",
        "a_locked_vault_says_what_it_needs",
        "what_was_erased_can_never_be_read_again",
    ),
    *_of(
        "unit/vault/test_reencryption",
        "the_plain_files_of_an_earlier_version_are_encrypted",
        "a_new_master_key_encrypts_everything_anew",
        "an_interrupted_rotation_is_finished_by_encrypting",
        "a_version_that_was_stored_under_a_replaced_key_is_not_recorded",
        "what_is_erased_while_it_is_encrypted_anew_does_not_come_back",
    ),
    *_of("unit/vault/test_erasure", "an_old_key_that_is_inserted_again_is_found"),
)

TESTS: dict[str, tuple[str, ...]] = {
    "keys/key.py": ("tests/unit/keys/test_key.py", "tests/unit/keys/test_path.py"),
    "keys/lock.py": ("tests/unit/keys/test_lock.py", "tests/unit/keys/test_key.py"),
    "keys/path.py": ("tests/unit/keys/test_path.py", "tests/unit/keys/test_key.py", _SCHEMES),
    "keys/signature.py": ("tests/unit/release/test_certificate.py",),
    "keys/stream.py": ("tests/unit/keys/test_key.py", "tests/unit/kernels/test_kernels.py", _SCHEMES),
    "keys/encrypted_file.py": ("tests/unit/keys/test_encrypted_file.py",),
    "keys/file_reader.py": ("tests/unit/keys/test_encrypted_file.py",),
    "survey/perturbation.py": _of(
        "survey/test_twins", "what_has_probability_0_never_happens", "both_agree_on_the_committed_vectors"
    ),
    "keys/text_cipher.py": ("tests/unit/keys/test_text_cipher.py", "tests/unit/survey/test_collector.py", *_ANSWERS),
    "survey/answer_encryption.py": ("tests/unit/survey/test_collector.py", *_ANSWERS),
    "release/certificate.py": ("tests/unit/release/test_certificate.py",),
    "release/manifest.py": ("tests/unit/release/test_certificate.py", f"{_COMPATIBILITY}::test_a_copy_is_still_whole"),
    "release/gate.py": _of(
        "unit/release/test_gate",
        "nothing_else_makes_a_clearance",
        "a_clearance_cannot_be_raised_to_another_level",
        "a_clearance_for_no_level_allows_none",
        "a_recorded_copy_is_not_written_without_a_record",
        "a_broken_attack_holds_every_copy_back",
        "a_clearance_reaches_workers",
        "a_revoked_grant_stops_a_copy_that_is_being_sent",
        "a_forged_entry_does_not_open_the_gate",
        "every_path_passes_the_gate",
    )
    + _of("unit/mechanisms/test_linear_map", "what_few_known_records_undo_is_refused"),
    "ledger/chain.py": (
        *_CHAIN,
        *_of("unit/vault/test_encryption", "the_hash_of_an_entry_confirms_no_guess"),
        *_of("compatibility/test_v0_1", "a_vault_goes_on"),
        *_of("unit/vault/test_erasure", "an_erased_dataset_cannot_be_read_by_anybody"),
    ),
    "ledger/row_cipher.py": (
        *_of(
            "unit/ledger/test_ledger",
            "rows_cannot_be_exchanged_with_their_names",
            "an_edited_entry_is_found[sqlite-dataset]",
            "an_edited_entry_is_found[sqlite-actor]",
            "an_unreadable_entry_is_found_and_reported",
        ),
        *_of("unit/vault/test_encryption", "no_name_or_text_of_the_ledger_can_be_read_without_the_secret"),
        *_of("unit/vault/test_reencryption", "a_new_master_key_encrypts_everything_anew"),
        *_of("unit/vault/test_unlocking", "nothing_is_read_without_the_secret_and_a_lost_one_ends_all_but_the_chain"),
    ),
    "ledger/ledger.py": (
        *_CHAIN,
        *_of("unit/vault/test_reencryption", "a_new_master_key_encrypts_everything_anew"),
    ),
    "ledger/reader.py": (
        *_of("unit/ledger/test_subject_index", "a_revocation_cannot_be_deleted"),
        *_of("unit/ledger/test_subject_index", "a_deleted_release_is_missed_by_everything_that_counts_releases"),
        *_of("unit/vault/test_tokens", "a_withdrawn_token_and_those_of_a_disabled_recipient_let_nobody_in"),
        *_of("compatibility/test_v0_1", "a_vault_goes_on"),
        *_of("unit/ledger/test_subject_index", "subjects_are_counted"),
        *_of("unit/vault/test_unlocking", "a_key_is_lost_only_if_the_vault_says_so"),
        *_of("unit/vault/test_unlocking", "a_key_that_was_recorded_as_lost_stays_so"),
        *_of("unit/vault/test_unlocking", "a_lost_secret_ends_everything_but_the_chain"),
        *_CHAIN,
    ),
    "ledger/subject_index.py": _of(
        "unit/ledger/test_subject_index",
        "the_stored_index_is_that_of_the_entries_in_every_part_of_the_tree",
        "a_revocation_cannot_be_deleted",
        "the_index_cannot_be_brought_back_to_an_earlier_state",
        "swapped_recipients_accuse_nobody",
        "a_deleted_release_is_missed_by_everything_that_counts_releases",
        "an_older_state_is_noticed_by_a_process_that_saw_a_later_one",
    ),
    "vault/tokens.py": ("tests/unit/vault/test_tokens.py",),
    "vault/grants.py": (
        "tests/unit/vault/test_grants.py",
        *_of(
            "unit/vault/test_vault",
            "grants_end",
            "errors",
            "a_grant_that_is_revoked_while_the_copy_is_made_stops_it",
            "an_empty_version_and_a_grant_that_ended",
            "a_grant_until_the_last_date",
        ),
        *_of("unit/vault/test_backup", "a_backup_is_restored_in_either_database[sqlite-sqlite]"),
    ),
    "vault/store.py": (
        "tests/unit/vault/test_store.py",
        *_of("unit/vault/test_vault", "repeating_changes_nothing", "a_failed_operation_leaves_no_file"),
        *_of("unit/vault/test_vault", "passwords_of_stores_are_not_stored", "a_folder_with_other_files"),
        *_of("unit/vault/test_backup", "a_backup_with_paths_outside_the_store"),
        *_of("unit/ledger/test_ledger", "altered_files_and_copies_are_found"),
    ),
    "vault/encrypted_store.py": _ENCRYPTION,
    "vault/data_keys.py": (
        *_ENCRYPTION,
        *_of("unit/vault/test_erasure", "an_erased_dataset_cannot_be_read_by_anybody"),
    ),
    "vault/encryption.py": _ENCRYPTION,
    "vault/erasure.py": _ERASURE,
    "vault/verification.py": _of("unit/vault/test_backup", "a_backup_is_restored_in_either_database[sqlite-sqlite]")
    + _of("unit/ledger/test_access_log", "a_shortened_log_is_found_and_not_continued", "a_removed_record_is_found")
    + _of(
        "unit/ledger/test_ledger",
        "a_noted_hash_reveals_a_rollback",
        "an_intact_vault_verifies",
        "altered_files_and_copies_are_found",
        "a_state_that_contradicts_the_ledger_is_found[sqlite-store]",
        "a_state_that_contradicts_the_ledger_is_found[sqlite-invented grant]",
        "a_state_that_contradicts_the_ledger_is_found[sqlite-counts]",
        "a_state_that_contradicts_the_ledger_is_found[sqlite-key]",
        "a_removed_entry_is_found[sqlite-6]",
    ),
    "survey/collector.py": ("tests/unit/survey/test_collector.py", *_ANSWERS),
}
"""The modules below `src/sfumato`, and the tests that must notice a fault in each: few and quick ones, so that hundreds
of faults take minutes. The whole suite has more."""

_SHARE = 11
_SHARES = {name: 21 for name in TESTS if name.startswith("keys/")} | {"keys/stream.py": 5, "vault/verification.py": 9}
"""How many faults are planted in a module, if not `_SHARE`."""


@dataclass
class Trial:
    """A fault and its fate."""

    module: str
    fault: Fault
    fate: str = ""
    """`killed`, `survived`, `equivalent`, or `timeout`, which counts as killed."""
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        fault = self.fault
        return {
            "module": self.module,
            "line": fault.line,
            "before": fault.before,
            "after": fault.after,
            "fate": self.fate,
            "seconds": round(self.seconds, 1),
        }


class Workspace:
    """A copy of the repository, in which one fault at a time is planted and tested in a forked process."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        for name in _COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, folder / name)
            elif (root / name).exists():
                shutil.copy2(root / name, folder / name)

    def start(self, module: str, fault: Fault | None, tests: tuple[str, ...]) -> int:
        """Plant a fault and run tests; returns the process."""
        path = self.folder / "src" / "sfumato" / module
        self._changed, self._source = path, path.read_text(encoding="utf-8")
        if fault is not None:
            path.write_text(fault.planted(self._source), encoding="utf-8")
            if "@njit" in self._source:  # compiled code is kept by file, whatever the files that it calls
                for compiled in (self.folder / "src").rglob("*.nb[ic]"):
                    compiled.unlink()
        child = os.fork()
        if child:
            return child
        try:
            os.setpgid(0, 0)
            code = _tested(self.folder, tests)
        except BaseException:  # a child never returns into its parent's code
            (self.folder / "log").write_text(traceback.format_exc())
            code = 70
        sys.stdout.flush()
        os._exit(code)

    def clear(self) -> None:
        """Undo the fault."""
        self._changed.write_text(self._source, encoding="utf-8")


def _tested(folder: Path, tests: tuple[str, ...]) -> int:
    """The exit code of pytest on the copy, in this process: 0 if all tests pass."""
    os.chdir(folder)
    sys.path[:] = [str(folder / "src"), str(folder), *(p for p in sys.path if p not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name == "tests" or name.startswith(("tests.", "sfumato"))]:
        del sys.modules[name]
    os.environ["PYTHONPATH"] = os.pathsep.join((str(folder / "src"), str(folder)))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True  # a fault of the same length and second would run as the one before it
    with (folder / "log").open("w") as log:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
    import pytest

    import sfumato

    if not Path(sfumato.__file__).is_relative_to(folder):
        raise RuntimeError(f"the tests must run the copy, and they run {sfumato.__file__}")
    options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-k", "not postgresql"]
    return int(pytest.main([*tests, *options, "-m", _LEAVE_OUT]))


def planned(modules: list[str], seed: str, limit: int | None = None) -> list[Trial]:
    """The faults to plant, up to `limit` in each module, or the share of each."""
    out = []
    for module in modules:
        source = (ROOT / "src" / "sfumato" / module).read_text(encoding="utf-8")
        picked = chosen(
            source, f"{seed}/{module}", limit or _SHARES.get(module, _SHARE), javascript=module.endswith(".js")
        )
        out += [Trial(module, fault) for fault in picked]
    return out


def run(trials: list[Trial], workers: int, seconds: float, report: Any, tests: dict[str, tuple[str, ...]]) -> None:
    """Judge all trials, some at a time; first, all tests must pass without a fault."""
    for name in _PRELOADED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="sfumato-mutants-") as base:
        free = [Workspace(ROOT, Path(base) / str(number)) for number in range(workers)]
        for space in free:
            _check_baseline(space, sorted({name for trial in trials for name in tests[trial.module]}), trials[0].module)
        waiting = deque(trials)
        running: dict[int, tuple[Workspace, Trial, float]] = {}
        while waiting or running:
            while waiting and free:
                trial, space = waiting.popleft(), free.pop()
                child = space.start(trial.module, trial.fault, tests[trial.module])
                running[child] = (space, trial, time.monotonic())
            for child, (space, trial, begin) in list(running.items()):
                done, status = os.waitpid(child, os.WNOHANG)
                trial.seconds = time.monotonic() - begin
                if not done and trial.seconds < seconds:
                    continue
                if not done:
                    os.killpg(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                code = os.waitstatus_to_exitcode(status) if done else None
                trial.fate = "timeout" if code is None else "survived" if code == 0 else "killed"
                space.clear()
                free.append(space)
                del running[child]
                report(trial)
            time.sleep(0.05)


def _check_baseline(space: Workspace, tests: list[str], module: str) -> None:
    """Refuse tests that fail without a fault; this also compiles what is cached."""
    _, status = os.waitpid(space.start(module, None, tuple(tests)), 0)
    if status:
        sys.exit(
            f"the tests must pass before a fault is planted, and they do not:\n{(space.folder / 'log').read_text()}"
        )


def equivalents() -> list[dict[str, str]]:
    """Faults that change nothing that a test could see, each with the reason."""
    return list(tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("fault", []))


def is_equivalent(trial: Trial, known: list[dict[str, str]]) -> bool:
    """Whether a fault is listed: by module, and by the text before and after it."""
    key = {"module": trial.module, "before": trial.fault.before, "after": trial.fault.after}
    return any(all(one[name] == value for name, value in key.items()) for one in known)


def survivors_of(file: Path, trials: list[Trial]) -> list[Trial]:
    """The trials whose faults survived an earlier run."""
    earlier = [one for one in json.loads(file.read_text()) if one["fate"] == "survived"]
    known = {(one["module"], one["line"], one["before"], one["after"]) for one in earlier}
    return [one for one in trials if (one.module, one.fault.line, one.fault.before, one.fault.after) in known]


def main() -> None:
    """Plant faults and print which were not noticed."""
    options = argparse.ArgumentParser(prog="python -m tests.mutation.campaign", description=main.__doc__)
    options.add_argument("--module", action="append", help="a module below src/sfumato; repeatable; default: all")
    options.add_argument("--limit", type=int, help="faults per module; default: its share")
    options.add_argument("--seed", default="1", help="chooses the faults")
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--timeout", type=float, default=40, help="seconds per fault (40)")
    options.add_argument("--json", type=Path, help="write all results to a file, after each fault")
    options.add_argument("--again", type=Path, help="plant only the faults that survived, by an earlier such file")
    given = options.parse_args()
    modules = given.module or [name for name in TESTS if (ROOT / "src" / "sfumato" / name).exists()]
    trials, known = planned(modules, given.seed, given.limit), equivalents()
    if given.again:
        trials = survivors_of(given.again, trials)
    judged: list[Trial] = []

    def report(trial: Trial) -> None:
        judged.append(trial)
        if trial.fate == "survived" and is_equivalent(trial, known):
            trial.fate = "equivalent"
        where = f"{trial.module}:{trial.fault.line}"
        print(
            f"[{len(judged)}/{len(trials)}] {trial.fate:10} {trial.seconds:4.1f} s {where}  {trial.fault}", flush=True
        )
        if given.json:
            given.json.write_text(json.dumps([one.as_dict() for one in judged], indent=1))

    run(trials, given.workers, given.timeout, report, TESTS)
    survivors = [trial for trial in judged if trial.fate == "survived"]
    counted = [trial for trial in judged if trial.fate != "equivalent"]
    print(f"{len(counted) - len(survivors)} of {len(counted)} faults were noticed; {len(survivors)} survived.")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
