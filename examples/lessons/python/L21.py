from torch import nn

model = nn.DataParallel(model).to("cuda")
