package doctor

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/pyenv"
)

func TestEnvironments(t *testing.T) {
	for want, change := range map[string]func(*Facts){
		"fits the card that is here":                           func(*Facts) {},
		"not built for the card that is here":                  cpuOnly,
		"no code for the card that is here":                    func(f *Facts) { card(f, 0x1b06, [2]int{6, 1}) },
		"the driver is too old for it":                         func(f *Facts) { driven(f, "515.105.01", 11070) },
		"the driver does not compile its PTX":                  func(f *Facts) { driven(f, "550.54.14", 12040); card(f, 0x3182, [2]int{13, 0}) },
		"libraries are missing":                                func(f *Facts) { f.env().Packages = f.env().Packages[:1] },
		"no card is here: it computes on the CPU":              func(f *Facts) { f.PCI, f.CUDA, f.NVML = nil, CUDA{}, NVML{} },
		"computes on the CPU":                                  func(f *Facts) { f.PCI, f.CUDA, f.NVML = nil, CUDA{}, NVML{}; cpuOnly(f) },
		"mps":                                                  mac,
		"mps, if its Python is for this chip":                  func(f *Facts) { mac(f); f.env().Machine = "x86_64" },
		"built for cards; for which could not be told":         func(f *Facts) { f.torch().Code = nil },
		"built for cards; which one is here could not be told": func(f *Facts) { f.PCI[0].Device = 1; f.CUDA.Cards = nil },
		"what it is built for could not be told":               func(f *Facts) { f.torch().Device = "" },
	} {
		f := trained()
		change(f)
		f.Python.Environments = append(f.Python.Environments, &pyenv.Environment{Root: "/usr", By: []string{"PATH"}})
		d := Judge(replayed(f))
		if len(d.Python) != 2 || len(d.Python[0].Builds) != 1 || d.Python[0].Builds[0].Says != want {
			t.Errorf("%q: %+v", want, d.Python)
		}
		text := strings.Join(strings.Fields(d.Text(100)), " ")
		if !strings.Contains(text, "/home/ada/.venv (VIRTUAL_ENV), Python 3.12.1: torch 2.9.0") || !strings.Contains(text, ": "+want) || !strings.Contains(text, "1 environment without") {
			t.Errorf("%q is not said: %s", want, text)
		}
	}
	if d := Judge(server()); d.Python != nil || strings.Contains(d.Text(80), "Python, by") {
		t.Error("what was not looked at is said")
	}
}
