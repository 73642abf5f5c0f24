package check

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/durable"
)

// Record is what a check keeps of a device, as JSON.
type Record struct {
	Warpline string    `json:"warpline"` // version
	Command  string    `json:"command"`
	Date     time.Time `json:"date"`
	System   string    `json:"system"`           // of the host: "linux/amd64"
	CUDA     string    `json:"cuda,omitempty"`   // that the driver supports: "12.4"
	Driver   string    `json:"driver,omitempty"` // what the kernel's half of it says of itself
	*Report
	Rows   []Row    `json:"rows"`
	Torch  *Torch   `json:"torch,omitempty"`
	Probes []Answer `json:"probes"`
	Times  []Timed  `json:"times,omitempty"` // what the card took beside the model of its time
}

// NewRecord joins the parts of a check. torch may be nil.
func NewRecord(rep *Report, torch *Torch, probes []Answer) (*Record, error) {
	r := &Record{Date: time.Now().UTC().Truncate(time.Second), System: runtime.GOOS + "/" + runtime.GOARCH, Report: rep, Rows: rep.Rows, Torch: torch, Probes: probes}
	name, dev, err := open(rep.Device)
	if err != nil {
		return nil, err
	}
	if p, ok := device.As[device.Prober](dev); ok {
		v, err := p.DriverVersion()
		if err != nil {
			return nil, err
		}
		r.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	if name.Kind == "cuda" {
		text, _ := os.ReadFile(driver.KernelModule) // other systems have none
		r.Driver, _, _ = strings.Cut(string(text), "\n")
	}
	return r, nil
}

// FileName is where a record of a device goes unless the user says: "warpline-check-cuda-0-20261121-173906.json".
func FileName(name string, now time.Time) string {
	return fmt.Sprintf("warpline-check-%s-%s.json", strings.ReplaceAll(name, ":", "-"), now.Format("20060102-150405"))
}

// Writable is an error with a hint if there is no folder for a file.
func Writable(path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return advice.Failf("make the folder, or give another --record=FILE", "%s cannot be written: there is no folder %s", path, dir)
	}
	return nil
}

// Write keeps the record in a file.
func (r *Record) Write(path string) error {
	return durable.WriteFile(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(r)
	})
}
