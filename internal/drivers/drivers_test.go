package drivers

import "testing"

func TestDriver(t *testing.T) {
	for _, c := range []struct{ cuda, os, want string }{
		{"12.8", "linux", "525.60.13"}, {"13.2", "linux", "580.65.06"}, {"13", "windows", "580.00"}, {"11.8", "windows", "452.39"}, {"10.2", "linux", "440.33"}, {"9.2.148", "linux", "396.26"}, {"8.0", "linux", ""}, {"", "linux", ""}, {"1", "linux", ""},
	} {
		if got := Min(c.cuda, c.os); got != c.want {
			t.Errorf("CUDA %s on %s: %s", c.cuda, c.os, got)
		}
	}
	for i := range Floors[1:] {
		for _, os := range []string{"linux", "windows"} {
			if Compare(Min(Floors[i].CUDA, os), Min(Floors[i+1].CUDA, os)) <= 0 {
				t.Errorf("%s: CUDA %s runs under older drivers than %s", os, Floors[i].CUDA, Floors[i+1].CUDA)
			}
		}
	}
	if Compare("525.60.13", "525.105.17") >= 0 || Compare("580.65.06", "580.65.6") != 0 {
		t.Error("drivers are ordered by numbers")
	}
	for driver, want := range map[string][2]int{"535.183.01": {12, 2}, "581.29": {13, 0}, "999": {13, 3}, "390.1": {}, "": {}} {
		if got := CUDA(driver); got != want {
			t.Errorf("driver %s brings CUDA %v", driver, got)
		}
	}
	for version, want := range map[[2]int][2]int{{7, 0}: {11, 0}, {7, 8}: {11, 8}, {8, 5}: {12, 5}, {8, 6}: {12, 7}, {8, 8}: {12, 9}, {9, 0}: {13, 0}, {9, 2}: {13, 2}, {6, 5}: {}} {
		if got := PTXNeeds(version); got != want {
			t.Errorf("PTX %v: %v", version, got)
		}
	}
}
