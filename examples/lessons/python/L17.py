from torch.utils.data import DataLoader

loader = DataLoader(tickets, batch_size=8, shuffle=True, num_workers=4, pin_memory=True)
for x, y in loader:
    x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
