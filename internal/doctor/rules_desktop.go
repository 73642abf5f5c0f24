package doctor

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/finding"
)

// desktopRules are about Windows, whose list of adapters tells what its bus and its driver do, and about laptops with two of
// them.
var desktopRules = []rule{
	{id: "D02", name: "windows-driver", step: P2, breaks: true, what: "Windows drives the card by NVIDIA's driver", can: (*Facts).windowsCard, saw: (*Facts).listed, judge: windowsDriver},
	{id: "D33", name: "turned-off", step: P2, breaks: true, what: "the NVIDIA card is turned on", can: (*Facts).windowsCard, saw: (*Facts).listed, judge: turnedOff},
	{id: "D30", name: "windows-problem", step: P2, breaks: true, what: "Windows starts the card", can: (*Facts).windowsCard, saw: (*Facts).sawStarted, judge: windowsProblem},
	{id: "D03", name: "windows-cuda", step: P6, breaks: true, what: "nvcuda.dll is where programs look", can: func(f *Facts) bool { return f.windowsCard() && f.Libraries != nil }, saw: (*Facts).sawWindowsCUDA, judge: windowsCUDA},
}

// Codes of Windows' device manager (CM_PROB_…, "Device Manager error messages").
const (
	codeNotStarted = 10
	codeResources  = 12
	codeDisabled   = 22
	codeGone       = 24
	codeNoDriver   = 28
	codeStopped    = 43
	codeAbsent     = 45
	codeUnsigned   = 52
)

var codeTexts = map[int]string{
	codeNotStarted: "it cannot start", codeResources: "there is no room for its memory: turn on \"Above 4G decoding\" in the firmware", codeGone: "it is not there, or does not work",
	31: "Windows could not load its driver", codeStopped: "the driver stopped it: mostly a broken or a wrong driver, or heat", codeUnsigned: "the driver's signature is not accepted",
}

// ours are NVIDIA's adapters on Windows.
func (f *Facts) ours() (all []Adapter) {
	for _, a := range f.Adapters {
		if a.Vendor == nvidia {
			all = append(all, a)
		}
	}
	return all
}

func (f *Facts) windowsCard() bool { return f.OS == "windows" && len(f.ours()) > 0 }

// basic reports whether an adapter has none but Windows' own driver.
func basic(a Adapter) bool {
	return a.Problem == codeNoDriver || a.Driver == "BasicDisplay" || a.Driver == "" && a.Version == ""
}

func windowsDriver(f *Facts) (all []ill) {
	for _, a := range f.ours() {
		if basic(a) {
			all = append(all, one("Windows has no NVIDIA driver for the "+a.Name, []finding.Evidence{value("driver", a.Driver, "its driver is %s, its code %d", known(a.Driver), a.Problem)},
				"start https://www.nvidia.com/drivers", "install the newest driver for the card; Windows' own has no CUDA", finding.High, "nvidia-smi works")...)
		}
	}
	return all
}

func turnedOff(f *Facts) (all []ill) {
	for _, a := range f.ours() {
		if a.Problem != codeDisabled && a.Problem != codeAbsent {
			continue
		}
		title := "the " + a.Name + " is turned off"
		if i := slices.IndexFunc(f.Adapters, func(b Adapter) bool { return b.Vendor != nvidia && b.Problem == 0 }); i >= 0 {
			title += ", and the " + f.Adapters[i].Name + " does all"
		}
		all = append(all, one(title, []finding.Evidence{value("problem", a.Problem, "Windows' code for it is %d", a.Problem)},
			"Get-PnpDevice -Class Display | Enable-PnpDevice -Confirm:$false", "in PowerShell as administrator; laptops have a mode that saves power (Eco, integrated only) in their maker's program, which must be off", finding.High, "nvidia-smi works")...)
	}
	return all
}

func windowsProblem(f *Facts) (all []ill) {
	for _, a := range f.ours() {
		if a.Problem == 0 || a.Problem == codeDisabled || a.Problem == codeAbsent || basic(a) {
			continue
		}
		text := codeTexts[a.Problem]
		if text == "" {
			text = "the device manager says more"
		}
		all = append(all, one(fmt.Sprintf("Windows does not start the %s: code %d, %s", a.Name, a.Problem, text), []finding.Evidence{value("problem", a.Problem, "Windows' code for it is %d; its driver is %s %s", a.Problem, a.Driver, a.Version)},
			"start https://www.nvidia.com/drivers", "install the driver anew, with its choice of a clean installation; then shut down fully and start", finding.Medium, "nvidia-smi works")...)
	}
	return all
}

func windowsCUDA(f *Facts) []ill {
	l := f.library("nvcuda.dll")
	if l.Path != "" || !slices.ContainsFunc(f.ours(), func(a Adapter) bool { return a.Problem == 0 && !basic(a) }) {
		return nil
	}
	return one("the driver is installed without CUDA: nvcuda.dll is missing", []finding.Evidence{value("nvcuda.dll", "", "nvcuda.dll is not in Windows' System32")},
		"start https://www.nvidia.com/drivers", "install the whole driver; what Windows Update brings may lack parts", finding.High, "where nvcuda.dll finds it")
}
