batch, tokens = 8, 64
print((batch // 2) * tokens / (batch * tokens))
print((tokens // 2) ** 2 / tokens**2)
