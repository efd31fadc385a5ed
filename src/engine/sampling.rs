//! From logits to a token: greedy, or drawn with a temperature, top-k and top-p.
