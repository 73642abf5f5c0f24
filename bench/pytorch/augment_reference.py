"""Pictures as torchvision transforms them.

    python augment_reference.py [--dir data/augment/testdata]

torchvision.json + torchvision.safetensors: in.NAME are pictures [channels, height, width] of values k/255; out.N is what call N of the JSON
makes of one: a function of torchvision.transforms.functional on float32, in float64 where it may, or an operation of RandAugment. Posterize
and Equalize are computed on bytes, as torchvision has them for bytes only.
"""

import argparse
import pathlib

import torch
import torchvision
from torchvision.transforms import InterpolationMode, autoaugment
from torchvision.transforms import functional as F

import common

SEED = 4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", default=common.ROOT / "data" / "augment" / "testdata", type=pathlib.Path)
    args = parser.parse_args()
    common.deterministic(SEED)
    bytes_ = {name: torch.randint(0, 256, shape, dtype=torch.uint8) for name, shape in
              {"small": (3, 7, 9), "even": (3, 8, 6), "gray": (1, 8, 5), "thin": (3, 2, 9)}.items()}
    bytes_["gray"] //= 3  # a narrow range
    bytes_["flat"] = torch.full((3, 3, 4), 77, dtype=torch.uint8)
    bytes_["even"][1] = bytes_["even"][0]  # equal channels
    pictures = {k: v.float() / 255 for k, v in bytes_.items()}
    tensors, calls = {f"in.{k}": v for k, v in pictures.items()}, []

    def call(name, picture, args, out):
        tensors[f"out.{len(calls)}"] = out.float()
        calls.append({"Name": name, "Picture": picture, "Args": [float(a) for a in args]})

    for name, p in pictures.items():
        call("Crop", name, [1, 2, 3, 4], F.crop(p, 1, 2, 3, 4))
        call("Crop", name, [-2, -1, 9, 8], F.crop(p, -2, -1, 9, 8))
        call("Flip", name, [], F.hflip(p))
        call("FlipVertical", name, [], F.vflip(p))
        call("CenterCrop", name, [2, 5], F.center_crop(p, [2, 5]))
        for h, w in [(5, 5), (3, 17), (12, 4), (1, 1), p.shape[1:]]:
            call("Resize", name, [h, w], F.resize(p, [h, w], InterpolationMode.BILINEAR, antialias=True))
        for angle in [17, -33.3, 0, 121]:
            call("Rotate", name, [angle], F.rotate(p, angle))
        for nearest in [True, False]:
            mode = InterpolationMode.NEAREST if nearest else InterpolationMode.BILINEAR
            for angle, tx, ty, scale, sx, sy in [(10, 0, 0, 1, 0, 0), (0, 2, -1, 1, 0, 0), (0, 0, 0, 1.37, 0, 0), (0, 0, 0, 1, 12, 7), (-25, 1, 2, 0.71, -9, 14)]:
                out = F.affine(p, angle, [tx, ty], scale, [sx, sy], mode)
                call("Move", name, [angle, tx, ty, scale, sx, sy, 0 if nearest else 1], out)
        for f in [0, 0.4, 1, 1.7]:
            call("Brightness", name, [f], F.adjust_brightness(p, f))
            call("Contrast", name, [f], F.adjust_contrast(p, f))
            call("Saturation", name, [f], F.adjust_saturation(p, f))
            call("Sharpness", name, [f], F.adjust_sharpness(p, f))
        for f in [-0.5, -0.21, 0, 0.33, 0.5]:
            call("Hue", name, [f], F.adjust_hue(p, f))
        c = p.shape[0]
        call("Normalize", name, [], F.normalize(p, [0.485, 0.456, 0.406][:c], [0.229, 0.224, 0.225][:c]))
        for bits in [1, 4, 8]:
            call("Posterize", name, [bits], F.posterize(bytes_[name], bits).float() / 255)
        for t in [0, 0.5, 1]:
            call("Solarize", name, [t], F.solarize(p, t))
        call("AutoContrast", name, [], F.autocontrast(p))
        call("Equalize", name, [], F.equalize(bytes_[name]).float() / 255)
        space = autoaugment.RandAugment(num_ops=1)._augmentation_space(31, p.shape[1:])
        for op, (magnitudes, signed) in space.items():
            # Of 30 degrees, the last level of Rotate, pixels lie midway between two, and float32 decides.
            for level, sign in [(0, 1), (13, 1), (29 if op == "Rotate" else 30, 1), (9, -1)]:
                if magnitudes.ndim == 0:
                    m = 0.0
                else:
                    m = float(magnitudes[level]) * (sign if signed else 1)
                if op in ("Posterize", "Equalize"):
                    out = autoaugment._apply_op(bytes_[name], op, m, InterpolationMode.NEAREST, None).float() / 255
                elif op == "Solarize":
                    out = autoaugment._apply_op(p, op, m / 255, InterpolationMode.NEAREST, None)
                else:
                    out = autoaugment._apply_op(p, op, m, InterpolationMode.NEAREST, None)
                call("RandAugment " + op, name, [level / 30 * (sign if signed else 1)], out)
    common.save_tensors(args.dir / "torchvision.safetensors", tensors)
    common.save_json(args.dir / "torchvision.json", {"versions": common.versions(torchvision), "calls": calls})


if __name__ == "__main__":
    main()
