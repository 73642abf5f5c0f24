package errortext

import (
	"regexp"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/literal"
)

// amdWords are, without spaces, what texts of AMD's stack have one of. PyTorch calls AMD's cards "cuda" as well.
var amdWords = literal.NewSet("rocm", "hiperror", "hipoutofmemory", "nohipgpus", "miopen", "rocblas", "hipblas", "amdgpu", "accessfaultbygpunode", "amd_serialize_kernel", "hip_visible_devices")

// ofAMD is what stands for NVIDIA's tools and switches with a card of AMD.
var ofAMD = strings.NewReplacer(
	fragmented, "PYTORCH_HIP_ALLOC_CONF=garbage_collection_threshold:0.8,max_split_size_mb:512 python train.py",
	"the same failure with expandable segments", "the same failure with it",
	"nvidia-smi -q -d COMPUTE shows the mode: sudo nvidia-smi -c 0, or stop the other process", "rocm-smi --showpids names it: stop it",
	"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
	"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
	"CUDA_LAUNCH_BLOCKING=1", "AMD_SERIALIZE_KERNEL=3 HIP_LAUNCH_BLOCKING=1",
	"TORCH_CUDA_ARCH_LIST", "PYTORCH_ROCM_ARCH",
	"compute-sanitizer python train.py", "rocgdb --args python train.py",
	"nvidia-smi --gpu-reset -i N", "rocm-smi --gpureset -d N",
	"nvidia-smi -q -d ROW_REMAPPER,ECC", "rocm-smi --showrasinfo all",
	"nvidia-smi nvlink -e", "rocm-smi --showxgmierr",
	"nvidia-smi -L", "rocm-smi",
	"nvidia-smi", "rocm-smi",
	"torch.version.cuda", "torch.version.hip",
	"cuBLAS", "hipBLAS", "cuDNN", "MIOpen",
	"--gpus all", "--device=/dev/kfd --device=/dev/dri",
)

// nvidiaTools are what is not to be typed where the card is AMD's.
var nvidiaTools = regexp.MustCompile(`(?i)nvidia|\bnv(?:cc|link|rtc|jitlink)|libcu|cudnn|CUDA_[A-Z]|compute-sanitizer|cuda toolkit|for CUDA\b`)

// elsewhere is what remains to do with texts of NVIDIA's own parts.
const elsewhere = "rocm-smi shows the cards, sudo dmesg | grep -i amdgpu what their driver says"

// forAMD gives a finding the tools of AMD's cards.
func forAMD(f *finding.Finding) {
	f.Title, f.Fix, f.DisprovedBy = ofAMD.Replace(f.Title), ofAMD.Replace(f.Fix), ofAMD.Replace(f.DisprovedBy)
	if nvidiaTools.MatchString(f.Fix) {
		f.Fix = elsewhere
	}
	if nvidiaTools.MatchString(f.DisprovedBy) {
		f.DisprovedBy = "rocm-smi and amdgpu's lines in dmesg show nothing of it"
	}
	for i := range f.Evidence {
		if e := &f.Evidence[i]; e.Name != "text" { // which is quoted
			e.Text = ofAMD.Replace(e.Text)
		}
	}
}
