package machinefile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf16"
)

// change is a field, by its names in XML and in text, with another value.
type change struct{ xml, text, value string }

// smiFixtures change the answer of a healthy card that works: to one in which a rule speaks, or nearly (near).
var smiFixtures = []struct {
	name, rule, near string
	changes          []change
}{
	{"lost", "D48", "", []change{{"gpu_temp", "GPU Current Temp", "GPU is lost"}, {"sm_clock", "SM", "GPU is lost"}, {"gpu_util", "GPU", "Unknown Error"}, {"persistence_mode", "Persistence Mode", "Unknown Error"},
		{"compute_mode", "Compute Mode", "Unknown Error"}, {"performance_state", "Performance State", "Unknown Error"}, {"average_power_draw", "Average Power Draw", "Unknown Error"}, {"current_power_limit", "Current Power Limit", "Unknown Error"},
		{"default_power_limit", "Default Power Limit", "Unknown Error"}, {"used", "Used", "Unknown Error"}, {"total", "Total", "Unknown Error"}, {"state", "State", "N/A"}, {"max_link_gen", "", "Unknown Error"}, {"current_link_gen", "", "Unknown Error"},
		{"dram_correctable", "DRAM Correctable", "Unknown Error"}, {"product_architecture", "Product Architecture", "Unknown Error"}, {"addressing_mode", "Addressing Mode", "Unknown Error"}, {"gpu_temp_slow_threshold", "GPU Slowdown Temp", "Unknown Error"}}},
	{"one figure unknown", "", "D48", []change{{"gpu_temp", "GPU Current Temp", "Unknown Error"}}},
	{"uncorrected", "D49", "", []change{{"dram_uncorrectable", "DRAM Uncorrectable", "2"}}},
	{"corrected", "", "D49", []change{{"dram_correctable", "DRAM Correctable", "900"}}},
	{"remap pending", "D49", "", []change{{"remapped_row_pending", "Pending#3", "Yes"}}},
	{"remap failed", "D49", "", []change{{"remapped_row_failure", "Remapping Failure Occurred", "Yes"}}},
	{"rows remapped", "", "D49", []change{{"remapped_row_unc", "Uncorrectable Error", "400"}}},
	{"sram", "D49", "", []change{{"sram_threshold_exceeded", "SRAM Threshold Exceeded", "Yes"}}},
	{"reset", "D50", "", []change{{"gpu_recovery_action", "GPU Recovery Action", "Reset"}}},
	{"no action", "", "D50", []change{{"gpu_recovery_action", "GPU Recovery Action", "N/A"}}},
	{"fabric", "D15", "", []change{{"state", "State", "In Progress"}, {"status", "Status", "N/A"}}},
	{"no fabric", "", "D15", []change{{"state", "State", "N/A"}, {"status", "Status", "N/A"}}},
	{"firmware", "D30", "", []change{{"gsp_firmware_version", "GSP Firmware Version", "580.65.06"}}},
	{"no firmware", "", "D30", []change{{"gsp_firmware_version", "GSP Firmware Version", "N/A"}}},
	{"brake", "D53", "", []change{{"clocks_event_reason_hw_power_brake_slowdown", "HW Power Brake Slowdown", "Active"}}},
	{"idle", "", "D53", []change{{"clocks_event_reason_gpu_idle", "Idle", "Active"}, {"gpu_util", "GPU", "0 %"}, {"sm_clock", "SM", "210 MHz"}}},
	{"prohibited", "D16", "", []change{{"compute_mode", "Compute Mode", "Prohibited"}}},
	{"exclusive", "D16", "", []change{{"compute_mode", "Compute Mode", "Exclusive_Process"}}},
	{"no mode", "", "D16", []change{{"compute_mode", "Compute Mode", "N/A"}}},
	{"unlicensed", "D22", "", []change{{"license_status", "License Status", "Unlicensed (Unrestricted)"}}},
	{"licensed", "", "D22", []change{{"license_status", "License Status", "Licensed (Expiry: 2026-1-1)"}}},
	{"mig pending", "D65", "", []change{{"pending_mig", "Pending", "Enabled"}}},
	{"pending of the driver's model", "", "D65", []change{{"pending_dm", "Pending#1", "N/A"}}},
	{"hot", "D54", "", []change{{"clocks_event_reason_sw_thermal_slowdown", "SW Thermal Slowdown", "Active"}}},
	{"capped", "D54", "", []change{{"sm_clock", "SM", "1200 MHz"}}},
	{"lowered", "D54", "", []change{{"current_power_limit", "Current Power Limit", "500.00 W"}, {"average_power_draw", "Average Power Draw", "495 W"}}},
	{"slightly lowered", "", "D54", []change{{"current_power_limit", "Current Power Limit", "690.00 W"}}},
	{"little work", "R27", "", []change{{"average_power_draw", "Average Power Draw", "150 W"}}},
	{"little to do", "", "R27", []change{{"average_power_draw", "Average Power Draw", "150 W"}, {"gpu_util", "GPU", "40 %"}}},
	{"narrow", "D55", "", []change{{"current_link_width", "Current#3", "8x"}}},
	{"slow link", "D55", "", []change{{"current_link_gen", "Current#2", "1"}}},
	{"slow link of an idle card", "", "D55", []change{{"current_link_gen", "Current#2", "1"}, {"gpu_util", "GPU", "0 %"}}},
	{"no slices", "D23", "", []change{{"current_mig", "Current#0", "Enabled"}, {"pending_mig", "Pending", "Enabled"}}},
	{"no mig", "", "D23", []change{{"current_mig", "Current#0", "N/A"}, {"pending_mig", "Pending", "N/A"}}},
	{"someone else", "D63", "", []change{{"used_memory", "Used GPU Memory", "20000 MiB"}}},
	{"context", "", "D63", []change{{"used_memory", "Used GPU Memory", "60100 MiB"}}},
	{"persistence", "D59", "", []change{{"persistence_mode", "Persistence Mode", "Disabled"}, {"process_info", "Process ID", ""}, {"used", "Used", "500 MiB"}}},
	{"persistence of a desktop", "", "D59", []change{{"persistence_mode", "Persistence Mode", "Disabled"}, {"product_name", "Product Name", "NVIDIA GeForce RTX 4090"}, {"process_info", "Process ID", ""}, {"used", "Used", "500 MiB"}}},
}

func file(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// inXML is an answer with a change.
func inXML(t *testing.T, s string, c change) string {
	t.Helper()
	if c.xml == "process_info" {
		begin, end := strings.Index(s, "<process_info>"), strings.Index(s, "</process_info>")
		return s[:begin] + s[end+len("</process_info>"):]
	}
	begin := strings.Index(s, "<"+c.xml+">")
	if begin < 0 {
		t.Fatalf("no element %s", c.xml)
	}
	begin += len(c.xml) + 2
	return s[:begin] + c.value + s[begin+strings.Index(s[begin:], "<"):]
}

// inText is the same of text. "Name#2" is the third row of that name, and an empty value is none, and nothing below it.
func inText(t *testing.T, s string, c change) string {
	t.Helper()
	if c.text == "" {
		return s
	}
	name, nth, _ := strings.Cut(c.text, "#")
	lines, left := strings.Split(s, "\n"), 0
	_, _ = fmt.Sscan(nth, &left)
	for i, line := range lines {
		key, _, ok := strings.Cut(line, " : ")
		if !ok || strings.TrimSpace(key) != name {
			continue
		}
		if left--; left >= 0 {
			continue
		}
		if c.value == "" { // with what lies below
			return strings.Join(append(lines[:i:i], lines[i+4:]...), "\n")
		}
		lines[i] = key + " : " + c.value
		return strings.Join(lines, "\n")
	}
	t.Fatalf("no row %s", c.text)
	return ""
}

// TestSMI: in XML and in text, every rule speaks of its fixtures, alone, and of no near miss.
func TestSMI(t *testing.T) {
	for _, c := range []struct {
		file string
		edit func(*testing.T, string, change) string
	}{{"healthy.xml", inXML}, {"healthy.txt", inText}} {
		whole := file(t, c.file)
		if r := diagnose(t, []byte(whole)); len(r.Findings) != 0 || len(r.Checked) == 0 || r.Figures["driver"] != "590.44.01" || r.Figures["cuda"] != "13.1" {
			t.Errorf("%s: %s", c.file, printed(t, r))
		}
		for _, f := range smiFixtures {
			t.Run(c.file+" "+f.name, func(t *testing.T) {
				s := whole
				for _, change := range f.changes {
					s = c.edit(t, s, change)
				}
				judged(t, diagnose(t, []byte(s)), f.rule)
			})
		}
	}
	for _, rule := range smiRules {
		if rule.rule == "R30" { // of several answers
			continue
		}
		hits, misses := 0, 0
		for _, f := range smiFixtures {
			if f.rule == rule.rule {
				hits++
			}
			if f.near == rule.rule {
				misses++
			}
		}
		if hits == 0 || misses == 0 {
			t.Errorf("%s has %d fixtures and %d near misses", rule.rule, hits, misses)
		}
	}
}

// TestSeveralAnswers: nvidia-smi -l prints one after the other; the last counts, and clocks that fell are R30.
func TestSeveralAnswers(t *testing.T) {
	for name, edit := range map[string]func(*testing.T, string, change) string{"healthy.xml": inXML, "healthy.txt": inText} {
		first := file(t, name)
		later := edit(t, first, change{"sm_clock", "SM", "1500 MHz"})
		judged(t, diagnose(t, []byte(first+"\n"+later)), "R30", "D54")
		judged(t, diagnose(t, []byte(later+"\n"+first)), "")
		judged(t, diagnose(t, []byte(first+"\n"+edit(t, first, change{"sm_clock", "SM", "1790 MHz"}))), "")
	}
}

// TestSMIInText: the text of a card reads as its XML does.
func TestSMIInText(t *testing.T) {
	a, b := diagnose(t, []byte(file(t, "healthy.xml"))), diagnose(t, []byte(file(t, "healthy.txt")))
	if printed(t, a) != printed(t, b) {
		t.Errorf("%s\n%s", printed(t, a), printed(t, b))
	}
}

// TestEncodings: what shells and terminals make of text: UTF-16, marks, colours, other encodings, line ends of Windows.
func TestEncodings(t *testing.T) {
	whole := file(t, "healthy.txt")
	wide := func(order binary.AppendByteOrder) string {
		out := order.AppendUint16(nil, 0xfeff)
		for _, u := range utf16.Encode([]rune(whole)) {
			out = order.AppendUint16(out, u)
		}
		return string(out)
	}
	want := printed(t, diagnose(t, []byte(whole)))
	for name, s := range map[string]string{"utf-16": wide(binary.LittleEndian), "utf-16, big end": wide(binary.BigEndian), "mark": "\xef\xbb\xbf" + whole,
		"windows": strings.ReplaceAll(whole, "\n", "\r\n"), "colours": strings.ReplaceAll(whole, "Enabled", "\x1b[32;1mEnabled\x1b[0m")} {
		if got := printed(t, diagnose(t, []byte(s))); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	r := diagnose(t, []byte(strings.Replace(whole, "Hopper", "Hop\xffper\x00\x07", 1)))
	if len(r.Notes) != 2 || !strings.Contains(r.Notes[0], "1 bytes") || !strings.Contains(r.Notes[1], "2 control") {
		t.Errorf("%v", r.Notes)
	}
}

// TestBadXML: cut, deep, and bombs: what is before the fault is read, with the place, or nothing is.
func TestBadXML(t *testing.T) {
	whole := file(t, "healthy.xml")
	for n := range len(whole) {
		if n%37 != 0 || !Kinds[0].Is([]byte(whole[:n])) {
			continue
		}
		r, err := Kinds[0].Diagnose(context.Background(), "file", strings.NewReader(whole[:n]))
		if err == nil && (len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "byte ")) || err != nil && !strings.Contains(err.Error(), "byte ") {
			t.Fatalf("%d bytes: %v %v", n, r, err)
		}
	}
	bomb := `<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><nvidia_smi_log><driver_version>&b;&b;</driver_version></nvidia_smi_log>`
	for name, s := range map[string]string{"deep": "<nvidia_smi_log>" + strings.Repeat("<a>", 100000), "bomb": bomb, "wide": "<nvidia_smi_log>" + strings.Repeat("<a/>", mostNodes+1)} {
		if _, err := Kinds[0].Diagnose(context.Background(), "file", strings.NewReader(s)); err == nil || !strings.Contains(err.Error(), "byte ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Kinds[0].Diagnose(ctx, "file", bytes.NewReader([]byte(whole))); err == nil {
		t.Error("cancelled, and no error")
	}
}

// TestFailures: what nvidia-smi says in place of an answer.
func TestFailures(t *testing.T) {
	for text, rule := range map[string]string{
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n": "D02",
		"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n":                                                        "D04",
		"Failed to initialize NVML: Unknown Error\n":                                                                      "D26",
		"Failed to initialize NVML: Insufficient Permissions\n":                                                           "D25",
		"Failed to initialize NVML: GPU access blocked by the operating system\n":                                         "D26",
		"No devices were found\n":                                                                                         "D01",
		"Unable to determine the device handle for GPU0000:02:00.0: GPU is lost. Reboot the system to recover this GPU\n": "D48",
		"Unable to determine the device handle for GPU 0000:02:00.0: Unknown Error\n":                                     "D48",
	} {
		judged(t, diagnose(t, []byte(text)), rule)
	}
	for _, text := range []string{"", "No devices are missing\n", "epoch 1: loss 0.3\n", "NVIDIA-SMI 535.54.03    Driver Version: 535.54.03\n"} {
		for _, k := range Kinds {
			if k.Is([]byte(text)) {
				t.Errorf("%q is of kind %s", text, k.Name)
			}
		}
	}
}

// TestCutIsNotHealthy: of a file that breaks off nothing is said to be well.
func TestCutIsNotHealthy(t *testing.T) {
	r, err := Kinds[0].Diagnose(t.Context(), "x", strings.NewReader(`<?xml version="1.0" ?><nvidia_smi_log><gpu id="00000000:17:00.0"><product_name>NVIDIA H100</product_name>&no;`))
	if err != nil || len(r.Notes) == 0 || len(r.Checked) > 0 {
		t.Errorf("%+v %v", r, err)
	}
}
