"""Files that must be refused, with a part of the sentence that says why and what to do."""

from __future__ import annotations

from tests.acceptance.everyday_files import D, File, sheet, text

REFUSED = [
    File("some-thousands.csv", text("a;b\n950;x\n1.234;y\n"), refused="'a' could be decimal or thousands"),
    File(
        "mixed-signs.csv",
        text("lat;temp\n52.520;1,5\n48.137;2,5\n"),
        refused="'lat' could be decimal or thousands",
    ),
    File("unclear.tsv", text("w\tn\n71,250\t1\n60,125\t2\n"), refused="'w' could be decimal or thousands"),
    File(
        "unrelated-dates.csv",
        text("a,d\n31.12.2026,01/02/2026\n30.11.2026,03/04/2026\n"),
        refused="'d' could have the day",
    ),
    File(
        "contradicted.csv",
        text("d,n\n01/13/2026,1\n03/04/2026,2\n"),
        refused="as .file. states",
        options={"dates": "day first"},
    ),
    File("no-such-minute.csv", text("d;n\n01.02.2026 10:10:61;1\n"), refused="there is no day 01.02.2026 10:10:61"),
    File(
        "mixed-encodings.csv",
        lambda path: path.write_bytes(b"a,b\n\xc3\xbc,1\n\xfc,2\n"),
        refused="UTF-8 in some cells",
    ),
    File("latin.jsonl", text('{"a": "ü"}\n', "latin-1"), refused="could not be read"),
    File("same-signs.csv", text("a\n1\n"), refused="must be different", options={"separator": '"'}),
    File("unknown-text.xlsx", sheet([["a"], [1]]), refused="must name columns", options={"text": ["b"]}),
    File(
        "unclear-dates.csv",
        text("seen,n\n01/02/2026,1\n03/04/2026,2\n"),
        refused="could have the day or the month first.*--file dates=",
    ),
    File(
        "unclear-numbers.csv",
        text("paid;n\n1,234;1\n2,345;2\n"),
        refused="could be decimal or thousands separators.*--file decimal=",
    ),
    File(
        "no-such-day.csv",
        text("seen;n\n31.02.2025;1\n30.01.2025;2\n"),
        refused="'seen' must hold date32.*there is no day 31.02.2025",
    ),
    File("no-names.csv", text("34,71.5\n71,60.25\n"), refused="the first line must name the columns"),
    File("title.csv", text("Patients 2026\n\na;b\n1;x\n2;y\n3;z\n"), refused="seems a title.*line 3.*--file header=3"),
    File("commas.csv", text("street\nA, 1\nB, 2\nC, 3\n"), refused="or header=1"),
    File("open-quote.csv", text('a,b\n1,"x\n2,y\n'), refused="begins in line 2"),
    File("ragged.csv", text("a,b\n1,2\n3\n"), refused="could not be read.*2 columns, got 1"),
    File("nothing.csv", text(""), refused="could not be read"),
    File("which-sheet.xlsx", sheet([["a"], [1]], "Notes"), refused="'Data', 'Notes'.*--file sheet="),
    File("nameless.xlsx", sheet([["a", None], [1, 2]]), refused="column 2 has no name.*--file header="),
    File("kinds.xlsx", sheet([["a"], [1], [D(2025, 1, 1)]]), refused="'a' holds dates and numbers"),
    File("damaged.xlsx", lambda path: path.write_bytes(b"PK\x03\x04 damaged"), refused="save it again as .xlsx"),
    File("damaged.sav", lambda path: path.write_bytes(b"$FL2 damaged"), refused="could not be read as spss"),
    File("long-beside.jsonl", text('{"n": 9007199254740993}\n{"n": 2.5}\n'), refused="'n' have more than 15 digits"),
    File(
        "escaped.jsonl",
        text('{"n\\u00fc": 9007199254740993}\n{"n\\u00fc": 2.5}\n'),
        refused="'nü' have more than 15 digits",
    ),
    File("longer.jsonl", text('{"n": 123456789012345678901}\n'), refused="'n' have more than 15 digits"),
    File("lists.jsonl", text('{"a": [1, 2]}\n'), refused="one value in each cell"),
    File("changing.jsonl", text('{"a": 1}\n{"a": "x"}\n'), refused="could not be read|one type in all lines"),
    File("notes.docx", text("x"), refused="must end in one of"),
]
