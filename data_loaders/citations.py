"""BibTeX of the datasets, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CITATIONS: Mapping[str, str] = MappingProxyType(
    {
        "digits": """@misc{alpaydin1998digits,
  author = {Alpaydin, Ethem and Kaynak, Cenk},
  title = {Optical Recognition of Handwritten Digits},
  year = {1998},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C50P49}
}""",
        "breast-cancer": """@misc{wolberg1993breast,
  author = {Wolberg, William H. and Mangasarian, Olvi L. and Street, W. Nick},
  title = {Breast Cancer Wisconsin (Diagnostic)},
  year = {1993},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C5DW2B}
}""",
        "checkers": """@inproceedings{yu2008sampled,
  author = {Yu, Chun-Nam John and Joachims, Thorsten},
  title = {Training Structural {SVM}s with Kernels Using Sampled Cuts},
  booktitle = {Proceedings of the 14th ACM SIGKDD International Conference on Knowledge
    Discovery and Data Mining},
  year = {2008}
}""",
        "adult": """@misc{becker1996adult,
  author = {Becker, Barry and Kohavi, Ronny},
  title = {Adult},
  year = {1996},
  howpublished = {UCI Machine Learning Repository; binary features of the {LIBSVM} data page},
  doi = {10.24432/C5XW20}
}""",
        "ijcnn1": """@misc{prokhorov2001ijcnn,
  author = {Prokhorov, Danil},
  title = {{IJCNN} 2001 Neural Network Competition},
  year = {2001},
  howpublished = {Slides, Ford Research Laboratory; features of the {LIBSVM} data page}
}""",
        "cod-rna": """@article{uzilov2006detection,
  author = {Uzilov, Andrew V. and Keegan, Joshua M. and Mathews, David H.},
  title = {Detection of Non-Coding {RNA}s on the Basis of Predicted Secondary Structure Formation
    Free Energy Change},
  journal = {BMC Bioinformatics},
  volume = {7},
  number = {173},
  year = {2006},
  doi = {10.1186/1471-2105-7-173}
}""",
        "mnist": """@article{lecun1998gradient,
  author = {LeCun, Yann and Bottou, L{\\'e}on and Bengio, Yoshua and Haffner, Patrick},
  title = {Gradient-Based Learning Applied to Document Recognition},
  journal = {Proceedings of the IEEE},
  volume = {86},
  number = {11},
  pages = {2278--2324},
  year = {1998},
  doi = {10.1109/5.726791}
}""",
        "fashion-mnist": """@misc{xiao2017fashion,
  author = {Xiao, Han and Rasul, Kashif and Vollgraf, Roland},
  title = {{Fashion-MNIST}: a Novel Image Dataset for Benchmarking Machine Learning Algorithms},
  year = {2017},
  eprint = {1708.07747},
  archivePrefix = {arXiv}
}""",
        "reuters_moneyfx": """@article{bordes2005fast,
  author = {Bordes, Antoine and Ertekin, Seyda and Weston, Jason and Bottou, L{\\'e}on},
  title = {Fast Kernel Classifiers with Online and Active Learning},
  journal = {Journal of Machine Learning Research},
  volume = {6},
  pages = {1579--1619},
  year = {2005},
  note = {Its money-fx task, of the {Reuters-21578} collection of David D. Lewis}
}""",
        "heart": """@misc{statlog1993heart,
  author = {{Statlog project}},
  title = {Statlog (Heart)},
  year = {1993},
  howpublished = {UCI Machine Learning Repository; scaled features of the {LIBSVM} data page},
  doi = {10.24432/C57303}
}""",
        "covtype": """@misc{blackard1998covertype,
  author = {Blackard, Jock A.},
  title = {Covertype},
  year = {1998},
  howpublished = {UCI Machine Learning Repository},
  doi = {10.24432/C50K5N}
}""",
        "susy": """@article{baldi2014searching,
  author = {Baldi, Pierre and Sadowski, Peter and Whiteson, Daniel},
  title = {Searching for Exotic Particles in High-Energy Physics with Deep Learning},
  journal = {Nature Communications},
  volume = {5},
  number = {4308},
  year = {2014},
  doi = {10.1038/ncomms5308}
}""",
        "cifar10": """@techreport{krizhevsky2009learning,
  author = {Krizhevsky, Alex},
  title = {Learning Multiple Layers of Features from Tiny Images},
  institution = {University of Toronto},
  year = {2009}
}""",
        "rcv1": """@article{lewis2004rcv1,
  author = {Lewis, David D. and Yang, Yiming and Rose, Tony G. and Li, Fan},
  title = {{RCV1}: A New Benchmark Collection for Text Categorization Research},
  journal = {Journal of Machine Learning Research},
  volume = {5},
  pages = {361--397},
  year = {2004}
}""",
        "real-sim": """@misc{mccallum_sraa,
  author = {McCallum, Andrew},
  title = {{SRAA}: Simulated/Real/Aviation/Auto {UseNet} Data},
  howpublished = {Vectors of the {LIBSVM} data page}
}""",
        "random-text": """@inproceedings{smola2007bundle,
  author = {Smola, Alexander J. and Vishwanathan, S. V. N. and Le, Quoc V.},
  title = {Bundle Methods for Machine Learning},
  booktitle = {Advances in Neural Information Processing Systems 20},
  year = {2007}
}""",
    }
)
