"""Run stereo matching on KITTI and report the run time per pair."""
import argparse
import os
import time

import numpy as np
import skimage.io
import torch
from torch.utils.data import DataLoader

import nets
from dataloader import StereoDataset

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="test", type=str)
parser.add_argument("--num_workers", default=4, type=int)
parser.add_argument("--data_dir", default="data/KITTI/kitti_2015/data_scene_flow")
parser.add_argument("--max_disp", default=192, type=int)
parser.add_argument("--pretrained_aanet", default=None, type=str)
parser.add_argument("--output_dir", default="output", type=str)
parser.add_argument("--count_time", action="store_true", help="Inference on a subset for time counting only")
args = parser.parse_args()


def main():
    os.makedirs(args.output_dir, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    test_data = StereoDataset(data_dir=args.data_dir, mode=args.mode, save_filename=True)
    test_loader = DataLoader(test_data, batch_size=1, shuffle=False,
                             num_workers=args.num_workers, pin_memory=True)

    aanet = nets.AANet(args.max_disp, num_downsample=2, feature_type="aanet").to(device)
    if args.pretrained_aanet is not None:
        state = torch.load(args.pretrained_aanet, map_location=device)
        aanet.load_state_dict(state["state_dict"])
    n_par = sum(p.numel() for p in aanet.parameters())
    print("=> Number of parameters: %d" % n_par)

    aanet.eval()
    inference_time = 0
    num_imgs = 0
    num_samples = len(test_loader)
    print("=> %d samples found in the test set" % num_samples)

    for i, sample in enumerate(test_loader):
        if args.count_time and i == 105:    # testing time for at most 100 images
            break
        left = sample["left"].to(device, non_blocking=True)
        right = sample["right"].to(device, non_blocking=True)

        # Warmup
        if args.count_time and i < 5:
            with torch.no_grad():
                aanet(left, right)
            continue

        num_imgs += left.size(0)
        with torch.no_grad():
            time_start = time.perf_counter()
            pred_disp = aanet(left, right)[-1]
            inference_time += time.perf_counter() - time_start

        if not args.count_time:
            disp = pred_disp[0].cpu().numpy()
            name = os.path.basename(sample["left_name"][0])
            skimage.io.imsave(os.path.join(args.output_dir, name), (disp * 256.0).astype(np.uint16))

    print("=> Mean inference time for %d images: %.3fs" % (num_imgs, inference_time / num_imgs))


if __name__ == "__main__":
    main()
