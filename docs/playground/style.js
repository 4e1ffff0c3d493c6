// Names, colours and dash patterns of the algorithms: the entries of jb.plots.ALGORITHMS that the playground has. Dash lengths are
// multiples of the line width. tests/docs/test_playground_files.py compares this file with the library.
"use strict";
const ALGORITHMS = {
  "bobw": { name: "MZS22 (10, 24)", colour: "#0072B2", dash: [] },
  "bobw-1-1": { name: "MZS22 (1, 1)", colour: "#56B4E9", dash: [4, 2] },
  "zimmert-seldin": { name: "ZS20", colour: "#009E73", dash: [5, 2, 1, 2] },
  "delayed-exp3": { name: "Delayed Exp3", colour: "#009E73", dash: [] },
  "tsallis-inf": { name: "Tsallis-INF", colour: "#CC79A7", dash: [2, 2] },
  "ucb1": { name: "Delayed UCB1", colour: "#E69F00", dash: [7, 2] },
  "thompson": { name: "Thompson sampling", colour: "#D55E00", dash: [] },
  "uniform": { name: "Uniform", colour: "#8A8A8A", dash: [1, 1] },
};
// Arms in the strip and the ribbon: jb.plots.COLOURS without black, which a dark page would hide.
const ARM_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const armColour = (arm) => ARM_COLOURS[arm % ARM_COLOURS.length];
