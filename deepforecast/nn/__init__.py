"""Building blocks of the networks, in torch alone: no data frames and no Lightning.

Signatures state the shapes of tensors as in jaxtyping, `Float[Tensor, "batch time past"]`; axes of the
same name have the same length within a call, `#` marks an axis that may be 1, and `*shape` any number of
axes. The tests of `nn` check them. The most frequent names:

- batch, paths: windows; windows times sample paths, those of a window next to each other
- time, horizon, steps: time steps up to the cutoff; those of the forecast; any number of time steps
- past, future, static: covariates; `past_features` and `future_features` include the static ones
- out_features: numbers per step that a body returns and a head takes; levels: probabilities of quantiles
- queries, keys, tokens: what attends, and to what; heads of width dim add up to the width of a token
"""
