package probe

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/warpline-ml/warpline/internal/doctor"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// displayClass is the class of devices that draw: GUID_DEVCLASS_DISPLAY.
var displayClass = windows.GUID{Data1: 0x4d36e968, Data2: 0xe325, Data3: 0x11ce, Data4: [8]byte{0xbf, 0xc1, 0x08, 0x00, 0x2b, 0xe1, 0x03, 0x18}}

const (
	currentVersion = `SOFTWARE\Microsoft\Windows NT\CurrentVersion`
	firstProcessor = `HARDWARE\DESCRIPTION\System\CentralProcessor\0`
	classes        = `SYSTEM\CurrentControlSet\Control\Class\`
)

// desktop asks Windows for its adapters and the driver's files.
func (p *prober) desktop() {
	v := windows.RtlGetVersion()
	s := &p.facts.Platform
	s.Name, s.Release = "windows", registryText(currentVersion, "DisplayVersion")
	s.Kernel = fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
	p.facts.CPU.Model = registryText(firstProcessor, "ProcessorNameString")
	devices, err := displays()
	if err != nil {
		p.note("Windows' list of adapters: %v", err)
	} else {
		p.facts.Shows.Registry = true
		p.facts.Adapters = []doctor.Adapter{}
	}
	for _, d := range devices {
		p.facts.Adapters = append(p.facts.Adapters, d.adapter())
	}
	p.systemLibraries(filepath.Join(os.Getenv("SystemRoot"), "System32"))
}

// displays lists the adapters that are present, those that are disabled too.
func displays() (all []displayDevice, err error) {
	set, err := windows.SetupDiGetClassDevsEx(&displayClass, "", 0, windows.DIGCF_PRESENT, 0, "")
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for i := 0; ; i++ {
		info, err := set.EnumDeviceInfo(i)
		if err == windows.ERROR_NO_MORE_ITEMS {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, display(set, info))
	}
}

func display(set windows.DevInfo, info *windows.DevInfoData) displayDevice {
	property := func(id windows.SPDRP) string {
		v, err := set.DeviceRegistryProperty(info, id)
		if err != nil {
			return ""
		}
		if list, ok := v.([]string); ok && len(list) > 0 {
			return list[0]
		}
		s, _ := v.(string)
		return s
	}
	d := displayDevice{name: property(windows.SPDRP_DEVICEDESC), id: property(windows.SPDRP_HARDWAREID), service: property(windows.SPDRP_SERVICE)}
	if key := property(windows.SPDRP_DRIVER); key != "" {
		d.version = registryText(classes+key, "DriverVersion")
		d.memory = registryNumber(classes+key, "HardwareInformation.qwMemorySize")
	}
	var status, problem uint32
	if windows.CM_Get_DevNode_Status(&status, &problem, info.DevInst, 0) == nil && status&windows.DN_HAS_PROBLEM != 0 {
		d.problem = int(problem)
	}
	return d
}

// registryText is a value of the registry; empty if there is none.
func registryText(key, name string) string {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, key, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer k.Close()
	s, _, _ := k.GetStringValue(name)
	return s
}

// registryNumber is a value of the registry that is a number; 0 if there is none.
func registryNumber(key, name string) int64 {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, key, registry.QUERY_VALUE)
	if err != nil {
		return 0
	}
	defer k.Close()
	n, _, err := k.GetIntegerValue(name)
	if err != nil {
		return 0
	}
	return int64(n)
}
