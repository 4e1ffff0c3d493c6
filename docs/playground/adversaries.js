// Written by `python -m experiments.playground.search`: the switches of the worst sequence found for each algorithm,
// and its mean regret with standard error over 4096 runs of the library.
const SEARCHED = { rounds: 300, delay: 20, arms: 2, adversaries: {
  "bobw": {"switches": [], "regret": 134.66, "error": 0.017},
  "bobw-1-1": {"switches": [1, 28], "regret": 72.56, "error": 0.084},
  "zimmert-seldin": {"switches": [1, 27], "regret": 78.43, "error": 0.082},
  "delayed-exp3": {"switches": [26, 81], "regret": 65.61, "error": 0.087},
  "tsallis-inf": {"switches": [20, 60, 100, 139, 180, 231], "regret": 73.51, "error": 0.126},
  "ucb1": {"switches": [20, 60, 100, 140, 180, 204, 209, 219, 226], "regret": 125.08, "error": 0.135},
  "thompson": {"switches": [25, 65, 104, 151, 155], "regret": 151.62, "error": 0.418},
  "uniform": {"switches": [], "regret": 150.0, "error": 0.0},
} };
