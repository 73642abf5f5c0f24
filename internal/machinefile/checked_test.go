package machinefile

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// unsaid are, for each line of what is well in nvidia-smi, fields without which nobody can say so.
var unsaid = map[string][]change{
	"memory: no errors that were not corrected": {{"sram_uncorrectable_parity", "SRAM Uncorrectable Parity", "N/A"}, {"sram_uncorrectable_secded", "SRAM Uncorrectable SEC-DED", "Unknown Error"},
		{"dram_uncorrectable", "DRAM Uncorrectable", "N/A"}},
	"memory: nothing is to be replaced by spare": {{"remapped_row_pending", "Pending#3", "N/A"}},
	"neither heat nor a lack of power holds the clocks down": {{"clocks_event_reason_gpu_idle", "Idle", "N/A"}, {"clocks_event_reason_sw_power_cap", "SW Power Cap", "N/A"},
		{"clocks_event_reason_hw_slowdown", "HW Slowdown", "N/A"}, {"clocks_event_reason_hw_thermal_slowdown", "HW Thermal Slowdown", "N/A"},
		{"clocks_event_reason_hw_power_brake_slowdown", "HW Power Brake Slowdown", "N/A"}, {"clocks_event_reason_sw_thermal_slowdown", "SW Thermal Slowdown", "N/A"}},
	"links have all of their lanes": {{"max_link_width", "Max#1", "N/A"}},
	"no card wants a reset":         {{"gpu_recovery_action", "GPU Recovery Action", "N/A"}},
}

// TestSMIChecked: of a card it is said that something is well where its answer has that, and not where it does not.
func TestSMIChecked(t *testing.T) {
	for _, h := range smiHealth {
		if len(unsaid[h.text]) == 0 {
			t.Errorf("no answer leaves %q open", h.text)
		}
		for name, edit := range map[string]func(*testing.T, string, change) string{"healthy.xml": inXML, "healthy.txt": inText} {
			whole := file(t, name)
			if r := diagnose(t, []byte(whole)); !slices.Contains(r.Checked, h.text) {
				t.Errorf("%s: %v without %q", name, r.Checked, h.text)
			}
			s := whole
			for _, c := range unsaid[h.text] {
				s = edit(t, s, c)
			}
			if r := diagnose(t, []byte(s)); slices.Contains(r.Checked, h.text) || len(r.Findings) > 0 || len(r.Checked) != len(smiHealth)-1 {
				t.Errorf("%s: %v, %v", name, r.Checked, r.Findings)
			}
		}
	}
	two := file(t, "healthy.xml")
	begin, end := strings.Index(two, "<gpu "), strings.Index(two, "</gpu>")+len("</gpu>")
	second := inXML(t, strings.Replace(two[begin:end], "id=\"", "id=\"1", 1), change{xml: "gpu_recovery_action", value: "N/A"})
	if r := diagnose(t, []byte(two[:end]+second+two[end:])); !slices.Contains(r.Checked, "no card wants a reset (1 of 2 cards tell)") {
		t.Errorf("of one card of two: %v", r.Checked)
	}
}

// TestNoCards: an answer without a card is a finding where the driver says that there is none, and else an error.
func TestNoCards(t *testing.T) {
	for _, s := range []string{"<nvidia_smi_log><driver_version>580.65.06</driver_version><attached_gpus>0</attached_gpus></nvidia_smi_log>",
		"\n==============NVSMI LOG==============\n\nDriver Version                            : 580.65.06\nAttached GPUs                             : 0\n"} {
		judged(t, diagnose(t, []byte(s)), "D01")
	}
	const none = "<nvidia_smi_log><driver_version>580.65.06</driver_version></nvidia_smi_log>"
	if r, err := kindFor(t, []byte(none)).Diagnose(t.Context(), "file", bytes.NewReader([]byte(none))); err == nil {
		t.Errorf("%v is well", r.Checked)
	}
}

// wells are texts of which something is said to be well, and near ones that do not have it.
var wells = []struct{ kind, line, text, without string }{
	{"kernel-log", "no Xid in", bootLine + "[ 9.000001] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06\n", bootLine + "[ 9.000001] usb 1-2: new device\n"},
	{"kernel-log", "no process was killed", bootLine + "[ 9.000001] usb 1-2: new device\n", "[ 9.000001] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06\n[ 9.100001] nvidia-nvlink: Nvlink Core is being initialized\n"},
	{"nvlink", "links are up", linksTop + nvlinks(12, "25 GB/s"), linksTop + "\t Link 0: Replay Errors: 0\n"},
	{"nvlink", "no link is up", "GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-1)\n" + nvlinks(12, "<inactive>"), linksTop + nvlinks(12, "25 GB/s")},
	{"nvlink", "no errors that links", linksTop + "\t Link 0: Replay Errors: 0\n\t Link 0: CRC Errors: 3\n", linksTop + nvlinks(12, "25 GB/s") + "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n"},
	{"nvlink", "cards in the matrix", " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n", linksTop + nvlinks(12, "25 GB/s")},
	{"collect-env", "CUDA is available", envTop + "Is CUDA available: True\n" + envCards, envTop + envCards},
	{"collect-env", "the build has code for the cards", envTop + "Is CUDA available: True\n" + envCards, envTop + "Is CUDA available: True\nGPU models and configuration: GPU 0: NVIDIA Something New\n"},
	{"collect-env", "a Mac has no CUDA", "PyTorch version: 2.9.0\nCUDA used to build PyTorch: None\n\nOS: macOS 15.1 (arm64)\nIs CUDA available: False\n", "PyTorch version: 2.9.0\nCUDA used to build PyTorch: None\n\nOS: macOS 15.1 (arm64)\n"},
	{"lspci", "on the bus: 1 ×", lspciTop + lspciGPU, lspciTop + strings.Replace(lspciGPU, "rev a1", "rev ff", 1)},
	{"lspci", "NVSwitches", lspciTop + lspciGPU + "02:00.0 Bridge [0680]: NVIDIA Corporation NVSwitch [10de:1af1] (rev a1)\n", lspciTop + lspciGPU},
}

// TestChecked: what is said to be well is what a text has.
func TestChecked(t *testing.T) {
	kinds := map[string]bool{"nvidia-smi": true}
	for _, w := range wells {
		kinds[w.kind] = true
		says := func(text string) bool {
			return slices.ContainsFunc(diagnose(t, []byte(text)).Checked, func(s string) bool { return strings.Contains(s, w.line) })
		}
		if k := kindFor(t, []byte(w.text)).Name; k != w.kind || !says(w.text) {
			t.Errorf("%s: %q is not said of %q", k, w.line, w.text)
		}
		if k := kindFor(t, []byte(w.without)).Name; k != w.kind || says(w.without) {
			t.Errorf("%s: %q is said of %q", k, w.line, w.without)
		}
	}
	for _, k := range Kinds {
		if !kinds[k.Name] {
			t.Errorf("nobody looks at what is said to be well in files of kind %s", k.Name)
		}
	}
}
