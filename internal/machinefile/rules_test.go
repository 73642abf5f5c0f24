package machinefile

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
)

// judged checks that a report has findings of these rules alone, each with all that a finding says.
func judged(t *testing.T, r *finding.Report, want ...string) {
	t.Helper()
	want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
	var ids []string
	for _, f := range r.Findings {
		ids = append(ids, f.Rule)
		if f.Title == "" || len(f.Evidence) == 0 || f.Fix == "" || f.Gain.Text == "" || f.Confidence == "" || f.DisprovedBy == "" {
			t.Errorf("%+v", f)
		}
		for _, e := range f.Evidence {
			if e.Text == "" || strings.Contains(e.Text, "%!") {
				t.Errorf("%+v", e)
			}
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(want))) {
		t.Errorf("found %v, want %v: %s", ids, want, printed(t, r))
	}
	if len(want) == 0 && len(r.Checked) == 0 && r.Kind != "collect-env" {
		t.Error("nothing is said to be healthy")
	}
}

const (
	bootLine = "[    0.000000] Linux version 6.8.0\n"
	nvidiaUp = "[    5.100000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.14\n"
	lspciTop = "00:00.0 Host bridge [0600]: Intel Corporation Device [8086:a700] (rev 01)\n"
	lspciGPU = "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] [10de:2684] (rev a1)\n"
	envTop   = "PyTorch version: 2.9.0+cu128\nIs debug build: False\nCUDA used to build PyTorch: 12.8\nROCM used to build PyTorch: N/A\n\nOS: Ubuntu 24.04.1 LTS (x86_64)\n"
	envCards = "GPU models and configuration: GPU 0: NVIDIA H100 80GB HBM3\nNvidia driver version: 570.86.15\n"
	linksTop = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n"
)

// nvlinks are rows of n links.
func nvlinks(n int, speed string) (s string) {
	for i := range n {
		s += "\t Link " + string(rune('0'+i/10)) + string(rune('0'+i%10)) + ": " + speed + "\n"
	}
	return s
}

// texts are files in which rules speak, or nearly (near).
var texts = []struct{ kind, rule, near, text string }{
	{"kernel-log", "", "", bootLine + nvidiaUp},
	{"kernel-log", "D48", "", "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n               NVRM: (PCI ID: 10de:26b5) installed in this system has\n               NVRM: fallen off the bus and is not responding to commands.\n[ 1843.439662] NVRM: The NVIDIA probe routine failed for 1 device(s).\n"},
	{"kernel-log", "D52", "", "kernel: NVRM: Xid (PCI:0000:dc:00): 149, NETIR_LINK_EVT  Fatal\nkernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149\n"},
	{"kernel-log", "D48", "", bootLine + "[ 9.000001] NVRM: Xid (PCI:0000:65:00): 79, pid=123, name=python, GPU has fallen off the bus.\n"},
	{"kernel-log", "D48", "", bootLine + "[ 9.000001] NVRM: The NVIDIA GPU 0000:b3:00.0\n[ 9.000002] NVRM: (PCI ID: 10de:2330) installed in this system has\n[ 9.000003] NVRM: fallen off the bus and is not responding to commands.\n[ 9.000004] NVRM: GPU 0000:b3:00.0: GPU has fallen off the bus.\n"},
	{"kernel-log", "D48", "", bootLine + "[ 9.000001] pcieport 0000:80:01.0: AER: Uncorrected (Fatal) error received\n[ 9.000002] nvidia 0000:81:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer\n"},
	{"kernel-log", "", "D48", bootLine + "[ 9.000001] usb 1-1: device has left the bus\n"},
	{"kernel-log", "D49", "", bootLine + "[ 9.000001] NVRM: Xid (PCI:0000:65:00): 48, pid=1, name=python, An uncorrectable double bit error (DBE) has been detected\n"},
	{"kernel-log", "", "D49", bootLine + "[ 9.000001] NVRM: Xid (PCI:0000:65:00): 63, pid=1, name=python, Row Remapper: New row marked for remapping\n"},
	{"kernel-log", "D50", "", bootLine + "[ 9.000001] NVRM: Xid (PCI:0000:65:00): 109, pid=1, name=python, Ch 00000020, errorString CTX SWITCH TIMEOUT\n"},
	{"kernel-log", "", "D50", bootLine + "[ 9.000001] NVRM: Xid (PCI:0000:65:00): 154, GPU recovery action changed from 0x0 (None) to 0x1\n"},
	{"kernel-log", "D53", "", bootLine + "[ 9.000001] NVRM: Xid (PCI:0000:65:00): 54, Auxiliary power is not connected\n"},
	{"kernel-log", "D53", "", bootLine + "[ 9.000001] NVRM: GPU 0000:01:00.0 does not have the necessary power cables connected.\n"},
	{"kernel-log", "", "D53", bootLine + "[ 9.000001] nvme nvme0: power state changed\n"},
	{"kernel-log", "D52", "", bootLine + "[ 9.000001] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 46 sourcetrack timeout\n"},
	{"kernel-log", "D52", "", bootLine + "[ 9.000001] NVRM: Xid (PCI:0000:65:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 6\n"},
	{"kernel-log", "", "D52", bootLine + "[ 9.000001] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Non-fatal, Link 46 LTSSM Fault Up\n"},
	{"kernel-log", "D51", "", bootLine + "[ 9.000001] NVRM: GPU 0000:65:00.0: WARNING: infoROM is corrupted at gpu 0000:65:00.0\n"},
	{"kernel-log", "", "D51", bootLine + "[ 9.000001] NVRM: infoROM version G500\n"},
	{"kernel-log", "D43", "", bootLine + "[ 9.000001] Memory cgroup out of memory: Killed process 77 (python) total-vm:9kB\n"},
	{"kernel-log", "", "D43", bootLine + "[ 9.000001] systemd-oomd: started\n"},
	{"kernel-log", "D30", "", bootLine + "[ 9.000001] NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0xffff:2351)\n"},
	{"kernel-log", "", "D30", bootLine + "[ 9.000001] nvidia 0000:01:00.0: enabling device (0000 -> 0003)\n"},
	{"kernel-log", "D31", "", bootLine + "[ 9.000001] NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n[ 9.000002] NVRM: BAR1 is 0M @ 0x0 (PCI:0000:01:00.0)\n"},
	{"kernel-log", "", "D31", bootLine + "[ 9.000001] pci 0000:01:00.0: BAR 1 [mem 0x380000000000-0x3807ffffffff 64bit pref]: assigned\n"},
	{"kernel-log", "D04", "", bootLine + "[ 9.000001] NVRM: API mismatch: the client 'python3' (pid 7) has the version 550.54.15, but this kernel module has the version 550.54.14.\n"},
	{"kernel-log", "", "D04", bootLine + nvidiaUp + nvidiaUp},
	{"kernel-log", "D01", "", bootLine + "[ 9.000001] NVRM: No NVIDIA GPU found.\n"},
	{"kernel-log", "", "D01", bootLine + "[ 9.000001] nvidia-nvlink: Nvlink Core is being initialized, major device number 510\n"},
	{"kernel-log", "D28", "", bootLine + "[ 9.000001] NVRM: The NVIDIA probe routine was not called for 1 device(s).\n[ 9.000002] NVRM: This can occur when another driver was loaded and obtained ownership of the NVIDIA device(s).\n"},
	{"kernel-log", "", "D28", bootLine + "[ 9.000001] nouveau: module is in the blacklist\n"},
	{"kernel-log", "D29", "", bootLine + "[ 9.000001] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b06)\n[ 9.000002] NVRM: installed in this system is not supported by open nvidia.ko\n"},
	{"kernel-log", "", "D29", bootLine + "[ 9.000001] usb 1-2: not supported\n"},
	{"kernel-log", "D27", "", bootLine + "[ 9.000001] Loading of unsigned module is rejected\n"},
	{"kernel-log", "", "D27", bootLine + "[ 9.000001] nvidia: module verification failed: signature and/or required key missing - tainting kernel\n"},
	{"kernel-log", "D22", "", bootLine + "[ 9.000001] NVRM: Xid (PCI:0000:65:00): 78, vGPU start error\n"},
	{"kernel-log", "", "D22", bootLine + "[ 9.000001] nvidia: module license 'NVIDIA' taints kernel.\n"},
	{"kernel-log", "D55", "", bootLine + "[ 9.000001] pci 0000:01:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link at 0000:00:01.0 (capable of 252.048 Gb/s)\n"},
	{"kernel-log", "D55", "", bootLine + strings.Repeat("[ 9.000001] pcieport 0000:80:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer\n", mostCorrected)},
	{"kernel-log", "", "D55", bootLine + strings.Repeat("[ 9.000001] pcieport 0000:80:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer\n", mostCorrected-1)},
	{"kernel-log", "D47", "", bootLine + "6,3973,227996636,-;nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing\n"},
	{"kernel-log", "", "D47", bootLine + "[ 9.000001] nvidia-peermem: loaded\n"},
	{"kernel-log", "R04", "", bootLine + "[ 9.000001] NVRM: Xid (PCI:0000:65:00): 31, pid=1, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f_00000000\n"},
	{"kernel-log", "", "R04", bootLine + "[ 9.000001] NVRM: Xid (PCI:0000:65:00): 45, pid=1, name=python, Ch 00000008\n"},

	{"lspci", "", "", lspciTop + lspciGPU + "\tKernel driver in use: nvidia\n"},
	{"lspci", "D01", "", lspciTop + "00:02.0 VGA compatible controller [0300]: Intel Corporation UHD Graphics [8086:4680]\n"},
	{"lspci", "", "D01", lspciTop + "01:00.0 3D controller [0302]: NVIDIA Corporation GA100 [10de:20b2] (rev a1)\n"},
	{"lspci", "D48", "", lspciTop + strings.Replace(lspciGPU, "rev a1", "rev ff", 1)},
	{"lspci", "", "D48", lspciTop + lspciGPU + "02:00.0 Network controller [0280]: Intel Corporation Wi-Fi 6 [8086:2723] (rev ff)\n"},
	{"lspci", "D28", "", lspciTop + lspciGPU + "\tKernel driver in use: nouveau\n\tKernel modules: nvidiafb, nouveau\n"},
	{"lspci", "", "D28", lspciTop + lspciGPU + "\tKernel driver in use: nvidia\n\tKernel modules: nvidiafb, nouveau, nvidia\n"},
	{"lspci", "D31", "", lspciTop + lspciGPU + "\tRegion 1: Memory at <unassigned> (64-bit, prefetchable)\n"},
	{"lspci", "", "D31", lspciTop + lspciGPU + "\tRegion 1: Memory at 6000000000 (64-bit, prefetchable) [size=32G]\n"},
	{"lspci", "D39", "", "00:01.0 PCI bridge [0604]: Broadcom PEX88096 [1000:c010]\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+\n" + lspciGPU + strings.Replace(lspciGPU, "01:", "02:", 1)},
	{"lspci", "", "D39", "00:01.0 PCI bridge [0604]: Broadcom PEX88096 [1000:c010]\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-\n" + lspciGPU + strings.Replace(lspciGPU, "01:", "02:", 1)},
	{"lspci", "D55", "", lspciTop + lspciGPU + "\t\tLnkSta:\tSpeed 16GT/s, Width x8 (downgraded)\n"},
	{"lspci", "", "D55", lspciTop + lspciGPU + "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16\n"},

	{"nvlink", "", "", linksTop + nvlinks(12, "25 GB/s")},
	{"nvlink", "D52", "", linksTop + nvlinks(11, "25 GB/s") + "\t Link 11: <inactive>\n"},
	{"nvlink", "D52", "", linksTop + nvlinks(10, "25 GB/s")},
	{"nvlink", "D52", "", linksTop + nvlinks(11, "25 GB/s") + "\t Link 11: 12.5 GB/s\n"},
	{"nvlink", "D52", "", linksTop + "\t Link 0: Replay Errors: 4\n\t Link 0: CRC Errors: 0\n"},
	{"nvlink", "", "D52", "GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-1)\n" + nvlinks(12, "<inactive>")},
	{"nvlink", "", "D52", linksTop + "\t Link 0: Replay Errors: 0\n\t Link 0: CRC Errors: 3\n"},
	{"nvlink", "D52", "", "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV18\tNV18\t0-31\nGPU1\tNV18\t X \tNV17\t0-31\nGPU2\tNV18\tNV17\t X \t0-31\n"},
	{"nvlink", "", "D52", "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV1\tNV2\t0-31\nGPU1\tNV1\t X \tSYS\t0-31\nGPU2\tNV2\tSYS\t X \t0-31\n"},
	{"nvlink", "D39", "", " \tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"},
	{"nvlink", "", "D39", " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"},

	{"collect-env", "", "", envTop + "Is CUDA available: True\n" + envCards},
	{"collect-env", "D34", "", "Collecting environment information...\nPyTorch version: 2.9.0+cpu\nIs debug build: False\nCUDA used to build PyTorch: None\nROCM used to build PyTorch: N/A\n\nOS: Microsoft Windows 11 Home\nIs CUDA available: False\nGPU models and configuration: No CUDA\nNvidia driver version: No CUDA\n"},
	{"collect-env", "D34", "", "PyTorch version: 2.1.0+cpu\nCUDA used to build PyTorch: Could not collect\nROCM used to build PyTorch: N/A\n\nOS: Ubuntu 22.04.3 LTS (x86_64)\nIs CUDA available: False\nGPU models and configuration: \nGPU 0: NVIDIA GeForce RTX 4090\nNvidia driver version: 535.104.05\n"},
	{"collect-env", "D34", "", "PyTorch version: 2.2.2\nCUDA used to build PyTorch: Could not collect\nROCM used to build PyTorch: N/A\n\nOS: Microsoft Windows 11 Education\nIs CUDA available: False\nGPU models and configuration: GPU 0: NVIDIA GeForce RTX 4080 Laptop GPU\nNvidia driver version: 551.86\n"},
	{"collect-env", "", "D34", "PyTorch version: 2.9.0+xpu\nCUDA used to build PyTorch: Could not collect\nROCM used to build PyTorch: N/A\n\nOS: Ubuntu 24.04 LTS (x86_64)\nIs CUDA available: False\n"},
	{"collect-env", "", "D34", "PyTorch version: 2.9.0\nCUDA used to build PyTorch: None\nROCM used to build PyTorch: N/A\n\nOS: macOS 15.1 (arm64)\nIs CUDA available: False\n"},
	{"collect-env", "", "D34", "PyTorch version: 2.9.0+rocm6.4\nCUDA used to build PyTorch: N/A\nROCM used to build PyTorch: 6.4.43482\nIs CUDA available: True\nGPU models and configuration: AMD Instinct MI300X\n"},
	{"collect-env", "D07", "", envTop + "Is CUDA available: False\nGPU models and configuration: GPU 0: NVIDIA H100 80GB HBM3\nNvidia driver version: 470.57.02\n"},
	{"collect-env", "", "D07", envTop + "Is CUDA available: True\nGPU models and configuration: GPU 0: NVIDIA H100 80GB HBM3\nNvidia driver version: 525.60.13\n"},
	{"collect-env", "D09", "", strings.ReplaceAll(strings.ReplaceAll(envTop, "cu128", "cu126"), "12.8", "12.6") + "Is CUDA available: True\nGPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090\nNvidia driver version: 570.86.15\n"},
	{"collect-env", "D09", "", envTop + "Is CUDA available: True\nGPU models and configuration: \nGPU 0: NVIDIA GeForce GTX 1080 Ti\nGPU 1: NVIDIA GeForce GTX 1080 Ti\n\nNvidia driver version: 570.86.15\n"},
	{"collect-env", "", "D09", envTop + "Is CUDA available: True\nGPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090\nNvidia driver version: 570.86.15\n"},
	{"collect-env", "D18", "", envTop + "Is CUDA available: False\n" + envCards + "\nCUDA_VISIBLE_DEVICES=\n"},
	{"collect-env", "", "D18", envTop + "Is CUDA available: True\n" + envCards + "\nCUDA_VISIBLE_DEVICES=0,1\n"},
	{"collect-env", "D02", "", envTop + "Is CUDA available: False\nGPU models and configuration: Could not collect\nNvidia driver version: Could not collect\n"},
	{"collect-env", "", "D02", envTop + "Is CUDA available: True\nGPU models and configuration: GPU 0: NVIDIA A100\nNvidia driver version: Could not collect\n"},
	{"collect-env", "D12", "", envTop + "Is CUDA available: False\n" + envCards},
	{"collect-env", "", "D12", envTop + "Is CUDA available: True\n" + envCards + "cuDNN version: Could not collect\n"},
	{"collect-env", "D40", "", envTop + "Is CUDA available: True\n" + envCards + "[pip3] torch==2.9.0\n[pip3] torchvision==0.20.1\n"},
	{"collect-env", "D40", "", envTop + "Is CUDA available: True\n" + envCards + "[pip3] torch==2.9.0\n[conda] torch                     2.4.1                    py3.12_cuda12.8_0    pytorch\n"},
	{"collect-env", "D40", "", envTop + "Is CUDA available: True\n" + envCards + "[pip3] nvidia-cublas-cu11==11.10.3.66\n[pip3] torch==2.9.0\n"},
	{"collect-env", "", "D40", envTop + "Is CUDA available: True\n" + envCards + "[pip3] nvidia-cublas-cu12==12.8.4.1\n[pip3] torch==2.9.0+cu128\n[pip3] torchvision==0.24.0\n[conda] torch                     2.9.0                    py3.12_cuda12.8_0    pytorch\n"},
	{"collect-env", "D62", "", envTop + "Is CUDA available: True\n" + envCards + "\nNCCL_P2P_DISABLE=1\n"},
	{"collect-env", "", "D62", envTop + "Is CUDA available: True\n" + envCards + "\nNCCL_P2P_DISABLE=0\nNCCL_DEBUG=INFO\n"},
}

// TestRules: every rule of text files speaks of its texts, alone, and of no near miss.
func TestRules(t *testing.T) {
	rules := map[string][]string{}
	for _, r := range kernelRules {
		rules["kernel-log"] = append(rules["kernel-log"], r.rule)
	}
	for _, r := range pciRules {
		rules["lspci"] = append(rules["lspci"], r.rule)
	}
	for _, r := range linkRules {
		rules["nvlink"] = append(rules["nvlink"], r.rule)
	}
	for _, r := range envRules {
		rules["collect-env"] = append(rules["collect-env"], r.rule)
	}
	hits, misses := map[string]int{}, map[string]int{}
	for _, f := range texts {
		k := kindFor(t, []byte(f.text))
		if k.Name != f.kind {
			t.Errorf("%q is of kind %s, not %s", f.text, k.Name, f.kind)
			continue
		}
		hits[f.kind+f.rule]++
		misses[f.kind+f.near]++
		t.Run(f.kind+" "+f.rule+f.near, func(t *testing.T) { judged(t, diagnose(t, []byte(f.text)), f.rule) })
	}
	for kind, all := range rules {
		for _, rule := range all {
			if hits[kind+rule] == 0 || misses[kind+rule] == 0 {
				t.Errorf("%s of %s has %d texts and %d near misses", rule, kind, hits[kind+rule], misses[kind+rule])
			}
		}
	}
}

// TestProcessorOnly: a build for the CPU is surely wrong only where the list names a card or its driver.
func TestProcessorOnly(t *testing.T) {
	for rest, want := range map[string]finding.Confidence{
		"GPU models and configuration: No CUDA\nNvidia driver version: No CUDA\n":                           finding.Low,
		"GPU models and configuration: GPU 0: NVIDIA GeForce RTX 4090\nNvidia driver version: 535.104.05\n": finding.High,
		"GPU models and configuration: Could not collect\nNvidia driver version: 535.104.05\n":              finding.High,
	} {
		r := diagnose(t, []byte("PyTorch version: 2.9.0+cpu\nCUDA used to build PyTorch: None\nROCM used to build PyTorch: N/A\n\nOS: Ubuntu 22.04\nIs CUDA available: False\n"+rest))
		if len(r.Findings) != 1 || r.Findings[0].Rule != "D34" || r.Findings[0].Confidence != want {
			t.Errorf("%s: %+v, want %s", rest, r.Findings, want)
		}
	}
}

// TestEnvironments: the lists of PyTorch, vLLM, MMEngine, detectron2 and transformers say the same.
func TestEnvironments(t *testing.T) {
	for name, text := range map[string]string{
		"pytorch":      "PyTorch version: 2.1.0+cu121\nIs debug build: False\nCUDA used to build PyTorch: 12.1\nIs CUDA available: False\nGPU models and configuration: GPU 0: Tesla T4\nNvidia driver version: 470.57.02\n",
		"vllm":         "==============================\n        System Info\n==============================\nOS                           : Ubuntu 22.04.5 LTS (x86_64)\n\n==============================\n       PyTorch Info\n==============================\nPyTorch version              : 2.1.0+cu121\nIs debug build               : False\nCUDA used to build PyTorch   : 12.1\n\nIs CUDA available            : False\nGPU models and configuration : GPU 0: Tesla T4\nNvidia driver version        : 470.57.02\n",
		"mmengine":     "sys.platform: linux\nPython: 3.10.12\nCUDA available: False\nGPU 0: Tesla T4\nDriver version: 470.57.02\nPyTorch: 2.1.0+cu121\n",
		"detectron2":   "----------------------  ---------------------------------\nsys.platform            linux\nPython                  3.10.12\nPyTorch                 2.1.0+cu121 @/usr/lib/python3/dist-packages/torch\nGPU available           No: torch.cuda.is_available() == False\nGPU 0                   Tesla T4 (arch=7.5)\nDriver version          470.57.02\n----------------------  ---------------------------------\n",
		"transformers": "- `transformers` version: 4.57.1\n- Platform: Linux-6.8.0-x86_64-with-glibc2.39\n- PyTorch version (GPU?): 2.1.0+cu121 (False)\n- GPU type: Tesla T4\n- Driver version: 470.57.02\n",
	} {
		r := diagnose(t, []byte(text))
		e := r.Detail.(*Environment)
		if e.Torch != "2.1.0+cu121" || e.Built != "12.1" || e.Available != "False" || e.Driver != "470.57.02" || !slices.Equal(e.GPUs, []string{"Tesla T4"}) {
			t.Errorf("%s: %+v", name, e)
		}
		if r.Kind != "collect-env" || len(r.Findings) != 1 || r.Findings[0].Rule != "D07" {
			t.Errorf("%s: %s %v", name, r.Kind, r.Findings)
		}
	}
}

// TestPrefixes: one message as each log has it.
func TestPrefixes(t *testing.T) {
	const text = "NVRM: Xid (PCI:0000:65:00): 79, pid=123, name=python, GPU has fallen off the bus."
	for prefix, at := range map[string]string{
		"": "", "[Sun Feb 23 16:24:18 2025] ": "Sun Feb 23 16:24:18 2025", "[12345.678901] ": "12345.678901", "[    5.678901] ": "5.678901",
		"kern  :warn  : 2025-01-21T04:41:44,283302+00:00 ": "2025-01-21T04:41:44,283302+00:00", "6,3973,227996636,-;": "227996636",
		"Feb 23 16:24:18 node7 kernel: ": "Feb 23 16:24:18", "Feb  3 16:24:18 node7 kernel: [12345.678901] ": "Feb  3 16:24:18",
		"2025-02-23T16:24:18.123456+00:00 node7 kernel: ": "2025-02-23T16:24:18.123456+00:00", "2025-02-23T16:24:18,123456+01:00 ": "2025-02-23T16:24:18,123456+01:00",
		"<4>[   12.345678] ": "12.345678",
	} {
		r := diagnose(t, []byte(prefix+text+"\n"))
		events := r.Detail.([]*Event)
		if r.Kind != "kernel-log" || len(events) != 1 || events[0].First != at || events[0].Text != text || events[0].Process != "python 123" {
			t.Errorf("%q: %+v", prefix, events)
		}
	}
}

// TestBounds: lines without end, and more kinds of events than are kept.
func TestBounds(t *testing.T) {
	r := diagnose(t, []byte(bootLine+"[ 9.000001] "+strings.Repeat("x", 1<<20)+"\n[ 9.000002] NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus.\n"))
	if len(r.Findings) != 1 || r.Findings[0].Line != "line 3" {
		t.Errorf("%+v", r.Findings)
	}
	var b bytes.Buffer
	b.WriteString(bootLine)
	for i := range 2 * mostEvents {
		b.WriteString("[ 9.000002] NVRM: Xid (PCI:0000:65:00): " + strings.Repeat("1", 1+i%5) + string(rune('0'+i%10)) + string(rune('0'+i/10%10)) + string(rune('0'+i/100%10)) + string(rune('0'+i/1000%10)) + ", test\n")
	}
	if events := diagnose(t, b.Bytes()).Detail.([]*Event); len(events) != mostEvents {
		t.Errorf("%d events", len(events))
	}
}

// FuzzDiagnose: no file makes a reader panic, whatever kind it is taken for, and what is reported can be written.
func FuzzDiagnose(f *testing.F) {
	// Beginnings: mutations of small inputs are many.
	for _, s := range samples {
		whole := file(f, s.file)
		f.Add([]byte(whole[:min(len(whole), 4000)]))
	}
	for _, text := range texts {
		f.Add([]byte(text.text))
	}
	f.Add([]byte(file(f, "healthy.txt")))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, k := range Kinds {
			k.Is(in)
			r, err := k.Diagnose(context.Background(), "file", bytes.NewReader(in))
			if err != nil {
				continue
			}
			if _, err := json.Marshal(r); err != nil {
				t.Fatal(err)
			}
		}
	})
}
