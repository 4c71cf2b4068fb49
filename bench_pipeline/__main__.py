"""``python -m bench_pipeline`` is ``bench``."""

from bench_pipeline.cli.main import main

if __name__ == "__main__":
    main()
