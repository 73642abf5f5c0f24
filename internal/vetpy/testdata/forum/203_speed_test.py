# speed of my segmentation net, why do i get 180 fps??
import numpy as np
import time
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvBNReLU(nn.Sequential):
    def __init__(self, cin, cout, k=3, s=1, g=1):
        super().__init__(nn.Conv2d(cin, cout, k, s, k // 2, groups=g, bias=False),
                         nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class InvertedResidual(nn.Module):
    def __init__(self, cin, cout, stride, t):
        super().__init__()
        mid = cin * t
        self.use_res = stride == 1 and cin == cout
        self.conv = nn.Sequential(ConvBNReLU(cin, mid, 1), ConvBNReLU(mid, mid, 3, stride, mid),
                                  nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = self.conv(x)
        return x + y if self.use_res else y


class MyNetwork(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.stem = ConvBNReLU(3, 32, 3, 2)
        cfg = [(32, 32, 2, 4), (32, 32, 1, 4), (32, 64, 2, 4), (64, 64, 1, 4), (64, 128, 2, 4),
               (128, 128, 1, 4), (128, 128, 1, 4)]
        self.body = nn.Sequential(*[InvertedResidual(i, o, s, t) for i, o, s, t in cfg])
        self.cls = nn.Conv2d(128, n_classes, 1)

    def forward(self, x):
        y = self.cls(self.body(self.stem(x)))
        return F.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)


def test_speed(n=50, size=768):
    sum_time = list()
    model = MyNetwork(30).cuda()
    model.eval()
    with torch.no_grad():
        for i in range(n):
            data = torch.randn(1, 3, size, size, device="cuda")
            torch.cuda.synchronize()
            start = time.perf_counter()
            model(data)
            end = time.perf_counter()
            if i >= 10:
                sum_time.append(end - start)
    print("mean time: ", np.mean(sum_time), "FPS: ", 1 / np.mean(sum_time))


if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    for size in (512, 768, 1024):
        test_speed(size=size)
