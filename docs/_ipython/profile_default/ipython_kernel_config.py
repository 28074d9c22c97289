"""The kernel that executes the pages: figures are SVG with text as paths, in one style."""

c = get_config()  # noqa: F821

c.IPKernelApp.log_level = "ERROR"
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.rc = {
    "figure.figsize": (6.4, 3.8),
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "svg.hashsalt": "symdp",
}
