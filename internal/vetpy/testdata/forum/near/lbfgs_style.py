import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torchvision import models, transforms

device = torch.device("cuda")
prep = transforms.Compose([transforms.Resize((512, 512)), transforms.ToTensor(),
                           transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
content = prep(Image.open("content.jpg").convert("RGB")).unsqueeze(0).to(device)
style = prep(Image.open("style.jpg").convert("RGB")).unsqueeze(0).to(device)
vgg = models.vgg19(weights="DEFAULT").features.to(device).eval()
for p in vgg.parameters():
    p.requires_grad_(False)
for m in vgg:
    if isinstance(m, nn.ReLU):
        m.inplace = False
STYLE, CONTENT = {0, 5, 10, 19, 28}, {21}


def feats(x):
    s, c = [], []
    for i, layer in enumerate(vgg):
        x = layer(x)
        if i in STYLE:
            s.append(x)
        if i in CONTENT:
            c.append(x)
    return s, c


def gram(x):
    b, c, h, w = x.shape
    f = x.view(b, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


with torch.no_grad():
    style_grams = [gram(f) for f in feats(style)[0]]
    content_feats = feats(content)[1]
image = content.clone().requires_grad_(True)
optimizer = torch.optim.LBFGS([image])

for it in range(30):
    def closure():
        optimizer.zero_grad()
        s, c = feats(image)
        loss = sum(F.mse_loss(gram(a), g) for a, g in zip(s, style_grams)) * 1e6
        loss = loss + sum(F.mse_loss(a, b) for a, b in zip(c, content_feats))
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    if it % 5 == 0:
        print(it, loss.item())
torch.save(image.detach().cpu(), "stylized.pt")
