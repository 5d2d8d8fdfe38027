"""Studies of SVM solvers: tasks x solvers x seeds, judged against a certified optimum."""
