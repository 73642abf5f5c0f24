// Package presence lets other processes of the same user ask what this one computes: which devices it has open, how much of
// their memory, how far its training is. The command's monitor asks.
//
// A process answers on a socket in a folder that nobody else may enter, and does nothing until it is asked. Where there can
// be no such socket the process goes on without one. WARPLINE_PRESENCE=off keeps it silent.
package presence

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Env is the environment variable that keeps a process silent when it is "off".
const Env = "WARPLINE_PRESENCE"

// Process is what a process tells. Texts are its own: who shows them drops what is not printed.
type Process struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Started time.Time `json:"started"`
	Devices []Device  `json:"devices"`
	Steps   int64     `json:"steps"`          // of optimizers, since the start
	Pace    float64   `json:"seconds_a_step"` // smoothed; 0 before the second
	Run     *Run      `json:"run,omitempty"`  // of a training of the command

	Hidden bool `json:"-"` // PID is another container's number
}

// Device is a device that a process has open, with what the process has of its memory, in bytes.
type Device struct {
	Name      string `json:"name"`            // as tensor.Open takes it
	Model     string `json:"model,omitempty"` // what the hardware calls itself
	Bus       string `json:"bus,omitempty"`   // PCI address
	Total     int64  `json:"total"`           // of the device
	Allocated int64  `json:"allocated"`       // by values
	Reserved  int64  `json:"reserved"`        // taken from the device
	Peak      int64  `json:"peak"`            // of Allocated
}

// Run is a training that is under way.
type Run struct {
	Task  string   `json:"task"`
	Model string   `json:"model"`
	Step  int      `json:"step"`
	Steps int      `json:"steps"`
	Batch int      `json:"batch"`
	Pace  float64  `json:"seconds_a_step"` // of the last steps; 0 before the first
	Loss  *float64 `json:"loss,omitempty"`
	Out   string   `json:"out,omitempty"` // the run folder
	URL   string   `json:"url,omitempty"` // of its live view
}

// here is what this process tells.
var here struct {
	sync.Mutex
	began   time.Time
	devices []func() Device
	run     func() Run // nil: none
	url     string     // of the run's live view; empty: none
	address string     // that it answers on; empty: none
}

// settled is how long a process lives before it answers: short ones leave no trace.
const settled = 300 * time.Millisecond

// AddDevice makes tell's answer a part of what this process tells. The first one makes the process answer. tell is called by
// other goroutines, while the device works.
func AddDevice(tell func() Device) {
	here.Lock()
	defer here.Unlock()
	here.devices = append(here.devices, tell)
	if len(here.devices) == 1 && os.Getenv(Env) != "off" {
		here.began = time.Now()
		time.AfterFunc(settled, answer)
	}
}

// SetRun makes tell's answer the training that this process tells of, until done is called.
func SetRun(tell func() Run) (done func()) {
	here.Lock()
	defer here.Unlock()
	here.run = tell
	return func() {
		here.Lock()
		defer here.Unlock()
		here.run = nil
	}
}

// SetURL says where the live view of this process's training is, empty for nowhere.
func SetURL(url string) {
	here.Lock()
	defer here.Unlock()
	here.url = url
}

// Steps that were made, the time of the last, and nanoseconds from one to the next, smoothed.
var steps, last, pace atomic.Int64

// Stepped notes that an optimizer has made a step.
func Stepped() {
	now := time.Since(epoch).Nanoseconds()
	before := last.Swap(now)
	switch n := steps.Add(1); {
	case n == 2:
		pace.Store(now - before)
	case n > 2:
		p := pace.Load()
		pace.Store(p + (now-before-p)/min(n, 20))
	}
}

var epoch = time.Now()

// tell is what this process tells now.
func tell() Process {
	here.Lock()
	devices, run, url := here.devices, here.run, here.url
	here.Unlock()
	p := Process{PID: os.Getpid(), Command: command(), Started: here.began, Steps: steps.Load(), Pace: float64(pace.Load()) / 1e9}
	for _, d := range devices {
		p.Devices = append(p.Devices, d())
	}
	if run != nil {
		p.Run = new(run())
		p.Run.URL = url
	}
	return p
}

// longest is what of a command line is told.
const longest = 400

// command is the command line, cut.
func command() string {
	if len(os.Args) == 0 {
		return ""
	}
	line := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	if len(line) > longest {
		line = strings.ToValidUTF8(line[:longest], "") + "…"
	}
	return line
}

// answer tells each who asks. Nobody is worse off where it cannot: the process is not seen, and goes on.
func answer() {
	dir := Dir()
	if err := private(dir); err != nil {
		return
	}
	sweep(dir)
	path := filepath.Join(dir, fmt.Sprintf("%d-%08x.sock", os.Getpid(), rand.Uint32()))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return
	}
	here.Lock()
	here.address = path
	here.Unlock()
	_ = os.Chmod(path, 0o600) // the folder is closed to others already
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_ = json.NewEncoder(c).Encode(tell()) // who asked may have gone
		c.Close()
	}
}

// Close takes the socket away, at the end of a process. What a process that was killed leaves is swept by later ones.
func Close() {
	here.Lock()
	defer here.Unlock()
	if here.address != "" {
		os.Remove(here.address)
		here.address = ""
	}
}

// private makes a folder that only this user may enter. One that is there must be such a folder.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !closed(info) {
		return fmt.Errorf("%s is not this user's alone", dir)
	}
	return nil
}

// fresh is how old a socket is before nobody answering on it means that its process has ended.
const fresh = 5 * time.Second

// sweep removes the sockets of processes that have ended.
func sweep(dir string) {
	for _, path := range sockets(dir) {
		info, err := os.Lstat(path)
		if err != nil || time.Since(info.ModTime()) < fresh {
			continue
		}
		c, err := net.DialTimeout("unix", path, 100*time.Millisecond)
		if err == nil {
			c.Close()
		} else if refused(err) {
			os.Remove(path)
		}
	}
}

func sockets(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.sock")) // the pattern is well-formed
	return paths
}
