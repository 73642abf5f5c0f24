parameters = 1_000_000_000
floor = parameters * (4 + 4 + 4 + 4)
print(f"{floor / 2**30:.2f} GiB at least")
