"""An example of a survey definition, as a starting point for a new survey."""

EXAMPLE = """\
title = "How we travel to work"
consent = "Your answers are randomly changed on your own device before they are sent. Nobody, not even us, can undo it."
deadline = "2030-12-31"
class = "car"                      # the question that a classifier predicts; leave it out if there is none
mode = "randomised"                # or "guided": see docs/survey.md

[levels]                           # privacy levels that each respondent chooses from: epsilon per question
careful = 0.5
balanced = 1.0
open = 2.5

[questions.car]
text = "Do you own a car?"
options = ["yes", "no"]

[questions.distance]
text = "How far is it to your work?"
kind = "number"
cuts = [2, 10, 30]                 # only the interval is perturbed and sent, never the number
unit = "km"

[questions.ways]
text = "How did you travel in the last month?"
kind = "multiple"
options = ["on foot", "bicycle", "bus or train", "car"]

[questions.home]
text = "Could you work from home?"
options = ["never", "some days", "always"]
"""
