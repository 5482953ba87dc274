"""Surveys with local differential privacy: answers are perturbed on the respondent's own device (after zhang2005)."""

from sfumato.survey.definition import Survey
from sfumato.survey.guidance import Guidance

__all__ = ["Guidance", "Survey"]
