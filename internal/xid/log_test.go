package xid

import "testing"

// lines are messages as logs have them, of each kind, with the card's address where they name it; and ones of none.
var lines = []struct{ kind, line, bus string }{
	{FallenOff, "NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.", "0000:65:00.0"},
	{FallenOff, "NVRM: GPU at PCI:0000:65:00: GPU-1 has fallen off the bus.", "0000:65:00"},
	{FallenOff, "               NVRM: fallen off the bus and is not responding to commands.", ""},
	{PCIeUncorrected, "pcieport 0000:80:01.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer", "0000:80:01.0"},
	{PCIeCorrected, "pcieport 0000:80:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer", "0000:80:01.0"},
	{PCIeLimited, "pci 0000:01:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link at 0000:00:01.0 (capable of 252.048 Gb/s)", "0000:01:00.0"},
	{InitFailed, "NVRM: GPU 0000:b3:00.0: RmInitAdapter failed! (0x62:0x40:2477)", "0000:b3:00.0"},
	{NoFirmware, "NVRM: RmInitAdapter: Cannot initialize GSP firmware RM", ""},
	{NoFirmware, "nvidia 0000:01:00.0: Direct firmware load for nvidia/580.65.06/gsp_ga10x.bin failed with error -2", ""},
	{InvalidRegion, "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:", ""},
	{Mismatch, "NVRM: API mismatch: the client has the version 580.65.06, but", ""},
	{NoCard, "NVRM: No NVIDIA GPU found.", ""},
	{OtherDriver, "NVRM: The NVIDIA probe routine was not called for 1 device(s).", ""},
	{NeedsOpen, "NVRM: GPU requires use of the NVIDIA open kernel modules.", ""},
	{NeedsClosed, "NVRM: installed in this system is not supported by open nvidia.ko", ""},
	{NeedsClosed, "NVRM: because it does not include the required GPU System Processor", ""},
	{Unsupported, "NVRM: installed in this system is not supported by the NVIDIA", ""},
	{Unsupported, "NVRM: NVIDIA 580.65.06 driver release.", ""},
	{Unsupported, "NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please", ""},
	{KeyRejected, "Loading of unsigned module is rejected", ""},
	{KeyRejected, "nvidia: Key was rejected by service", ""},
	{PowerCable, "NVRM: GPU 0000:01:00.0: GPU does not have the necessary power cables connected.", "0000:01:00.0"},
	{CorruptInfoROM, "NVRM: GPU at 0000:01:00.0: InfoROM is corrupt", ""},
	{PeerMemory, "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing", ""},
	{OutOfMemory, "Memory cgroup out of memory: Killed process 4242 (python), UID 1000", ""},
	{OutOfMemory, "Out of memory: Kill process 4242 (python) score 900 or sacrifice child", ""},
	{MemoryConstraint, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)", ""},
	{MemoryInvoked, "python invoked oom-killer: gfp_mask=0xcc0", ""},

	{"", "nvidia: module verification failed: signature and/or required key missing - tainting kernel", ""},
	{"", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06", ""},
	{"", "nouveau: module is in the blacklist", ""},
	{"", "usb 1-2: not supported", ""},
	{"", "pci 0000:01:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)", ""},
}

// TestMessages: each kind of message is known by its lines, and nothing by ordinary ones.
func TestMessages(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, l := range lines {
		seen[l.kind] = true
		kind := ""
		m, bus, process := MessageOf(l.line)
		if m != nil {
			kind = m.Kind
		}
		if kind != l.kind || bus != l.bus || (process == "python") != (kind == OutOfMemory) {
			t.Errorf("%q: %s of %q, process %q", l.line, kind, bus, process)
		}
	}
	for _, kind := range MessageKinds() {
		if !seen[kind] {
			t.Errorf("no line is of kind %s", kind)
		}
	}
}

// TestErrorOf: numbered errors as logs have them.
func TestErrorOf(t *testing.T) {
	for line, want := range map[string]Error{
		"NVRM: Xid (PCI:0000:65:00): 79, pid=123, name=python, GPU has fallen off the bus.":     {Of(79), "0000:65:00", "123", "python"},
		"NVRM: Xid (PCI:0000:65:00): 31, pid='<unknown>', name=<unknown>, Ch 00000008":          {Of(31), "0000:65:00", "<unknown>", "<unknown>"},
		"NVRM: Xid (0000:65:00): 48, An uncorrectable double bit error (DBE) has been detected": {Of(48), "0000:65:00", "", ""},
	} {
		if got, ok := ErrorOf(line); !ok || got != want {
			t.Errorf("%q: %+v", line, got)
		}
	}
	if e, ok := ErrorOf("nvidia-nvswitch3: SXid (PCI:0000:c3:00.0): 12028, Non-fatal"); ok {
		t.Errorf("%+v", e)
	}
}
