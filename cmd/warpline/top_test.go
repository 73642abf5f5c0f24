package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/warpline-ml/warpline/internal/monitor"
	"github.com/warpline-ml/warpline/internal/nvml"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// busyMachine is a snapshot of two cards and many processes, at a second.
func busyMachine(second int) *monitor.Snapshot {
	s := &monitor.Snapshot{Time: time.Date(2026, 11, 23, 13, 45, second, 0, time.UTC), Driver: "580.82", Host: monitor.Host{Cores: 64}}
	for i := range 2 {
		s.Devices = append(s.Devices, monitor.Device{ID: fmt.Sprint(i), Kind: monitor.Card, Device: nvml.Device{Name: "NVIDIA H100 80GB HBM3",
			Values: map[nvml.Key]float64{nvml.MemoryTotal: 80 << 30, nvml.MemoryUsed: float64(10<<30 + i), nvml.Utilization: float64(10 * second), nvml.Power: 300, nvml.PowerLimit: 700}}})
	}
	for i := range 12 {
		s.Processes = append(s.Processes, monitor.Process{PID: 100 + i, Visible: true, User: "ada", Elapsed: float64(100 - i), Command: fmt.Sprintf("job %d", i),
			Parents: []monitor.Parent{{PID: 50, Command: "launcher"}}, Uses: []monitor.Use{{Device: "0", Memory: new(float64(i << 30))}}})
	}
	return s
}

// press is a key.
func press(k string) tea.Msg {
	switch k {
	case "down":
		return tea.KeyPressMsg{Code: tea.KeyDown}
	case "ctrl+c":
		return tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	case "esc":
		return tea.KeyPressMsg{Code: tea.KeyEscape}
	case "space":
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	}
	return tea.KeyPressMsg{Code: rune(k[0]), Text: k}
}

func newTopModel(second *int) *topModel {
	return &topModel{sample: func() *monitor.Snapshot { return busyMachine(*second) }, interval: time.Millisecond, view: monitor.View{Sort: "memory", History: new(monitor.History)}}
}

// TestTopScreens feeds messages to the model and looks at the screen after each, whole.
func TestTopScreens(t *testing.T) {
	second := 1
	m := newTopModel(&second)
	var all strings.Builder
	look := func(what string) {
		text := m.text()
		lines := strings.Split(text, "\n")
		if len(lines) != m.height {
			t.Errorf("%s: %d lines on a terminal of %d", what, len(lines), m.height)
		}
		for _, line := range lines {
			if render.Width(line) > m.view.Width {
				t.Errorf("%s: wider than %d: %q", what, m.view.Width, line)
			}
		}
		fmt.Fprintf(&all, "== %s\n%s\n", what, text)
	}
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 24})
	look("before the first snapshot")
	m.Update(m.Init()())
	look("first")
	for _, k := range []string{"s", "t", "down", "l", "h"} {
		m.Update(press(k))
		look("key " + k)
	}
	m.Update(press("esc"))
	m.Update(press("t"))
	m.Update(press("p"))
	second = 9
	m.Update(m.take())
	look("paused, a snapshot later")
	m.Update(press("space"))
	m.Update(m.take())
	look("and on")
	m.Update(tea.WindowSizeMsg{Width: 40, Height: 10})
	look("40×10")
	testutil.Golden(t, "testdata/top.txt", []byte(all.String()))
	for _, size := range [][2]int{{1, 1}, {0, 0}, {20, 2}, {300, 100}} {
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		m.color = size[0]%2 == 0
		m.text() // does not panic
	}
}

func TestTopEnds(t *testing.T) {
	for k, interrupted := range map[string]bool{"q": false, "esc": false, "ctrl+c": true} {
		m := newTopModel(new(int))
		_, cmd := m.Update(press(k))
		if cmd == nil || m.interrupted != interrupted {
			t.Errorf("%s: %v, interrupted %v", k, cmd != nil, m.interrupted)
			continue
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not end it", k)
		}
	}
}

// TestTopGoesOn: behind a snapshot the next one is due, and taken.
func TestTopGoesOn(t *testing.T) {
	m := newTopModel(new(int))
	_, cmd := m.Update(m.take())
	_, cmd = m.Update(cmd())
	if _, ok := cmd().(sampled); !ok {
		t.Error("no snapshot follows")
	}
}

func TestTopOnce(t *testing.T) {
	code, out, errs := command(t.Context(), "top", "--once")
	if code != exitDone || !strings.Contains(out, monitor.Meaning[:30]) || errs != "" {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	code, out, _ = command(t.Context(), "top", "--once", "--json")
	var s monitor.Snapshot
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != exitDone || s.Host.Cores < 1 || strings.Count(out, "\n") != 1 {
		t.Errorf("%d %v\n%s", code, err, out)
	}
}

func TestTopBad(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for args, want := range map[string]string{
		"--sort size": "memory", "--interval 1ms": "100ms", "--interval x": "--interval", "--listen nowhere:x": "--listen", "--listen " + l.Addr().String(): "in use", "extra": "extra",
	} {
		code, out, errs := command(t.Context(), append([]string{"top"}, strings.Fields(args)...)...)
		if code != exitFailed || out != "" || strings.Count(errs, "\n") != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d\n%s%s", args, code, out, errs)
		}
	}
}

func TestTopMetrics(t *testing.T) {
	s := httptest.NewServer(metrics(monitor.New(), time.Hour))
	defer s.Close()
	var bodies []string
	for range 2 {
		r, err := http.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != 200 || r.Request.URL.Path != "/metrics" || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
			t.Errorf("%v %v", r, err)
		}
		bodies = append(bodies, string(body))
	}
	if bodies[0] != bodies[1] || !strings.Contains(bodies[0], "warpline_nvml_up") {
		t.Error(errors.New(bodies[0]))
	}
}
