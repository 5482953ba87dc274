"""A survey to begin with."""

EXAMPLE = """\
title = "How we travel to work"
consent = "Your answers are blurred on your own device before they are sent. Nobody, we included, can undo it."
deadline = "2030-12-31"
class = "car"                      # the question that a classifier shall answer; leave it out if there is none
mode = "randomised"                # or "guided": see below

[levels]                           # the stops of each respondent's slider: epsilon of a question
careful = 0.5
balanced = 1.0
open = 2.5

[questions.car]
text = "Do you own a car?"
options = ["yes", "no"]

[questions.distance]
text = "How far is it to your work?"
kind = "number"
cuts = [2, 10, 30]                 # only the bin is ever blurred and sent
unit = "km"

[questions.ways]
text = "How did you travel in the last month?"
kind = "multiple"
options = ["on foot", "bicycle", "bus or train", "car"]

[questions.home]
text = "Could you work from home?"
options = ["never", "some days", "always"]
"""
