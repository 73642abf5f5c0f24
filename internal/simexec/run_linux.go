package simexec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
)

// forwarded are the signals that the program gets from this process.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGCONT, syscall.SIGWINCH}

// run is a program under way.
type run struct {
	cfg    Config
	sim    simcuda.Config
	dir    string // of the library and the socket
	report *report

	mu       sync.Mutex
	sessions []*session
	ended    bool
	wg       sync.WaitGroup
}

// Run runs the program to its end. Its Result says how it ended; an error, an *advice.Error, that it could not be run.
func Run(ctx context.Context, c Config) (*Result, error) {
	sim, err := c.simulated()
	if err != nil {
		return nil, err
	}
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return nil, advice.Failf("give the path of a program, or one in the PATH", "cannot run %s: %v", c.Command[0], cause(err))
	}
	dir, err := os.MkdirTemp("", "warpline-exec-")
	if err != nil {
		return nil, advice.Failf("make room in the folder for temporary files, or name another in TMPDIR", "no folder for the library: %v", err)
	}
	defer os.RemoveAll(dir)
	if err := install(ctx, filepath.Join(dir, "libcuda.so.1")); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		return nil, advice.Failf("name a folder with a short path in TMPDIR", "cannot listen for the program: %v", err)
	}
	x := &run{cfg: c, sim: sim, dir: dir, report: newReport(c, sim)}
	x.wg.Add(1)
	go x.accept(listener)
	state, err := x.program(ctx, path, listener.Addr().String())
	x.end(listener)
	if err != nil {
		return nil, advice.Failf("try it without warpline", "cannot run %s: %v", c.Command[0], cause(err))
	}
	return x.result(state), nil
}

// result says how the program ended.
func (x *run) result(state *os.ProcessState) *Result {
	r := x.report.result()
	r.Status = state.ExitCode()
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		r.Status, r.Signal = 128+int(w.Signal()), w.Signal().String()
	}
	return r
}

// cause is an error without the name of the program.
func cause(err error) error {
	var e *exec.Error
	var p *os.PathError
	switch {
	case errors.As(err, &e):
		return e.Err
	case errors.As(err, &p):
		return p.Err
	}
	return err
}

// simulated is how the cards are simulated.
func (c *Config) simulated() (simcuda.Config, error) {
	if len(c.Command) == 0 {
		return simcuda.Config{}, advice.Failf("give it behind --, as in warpline sim exec -- ./program", "no program to run")
	}
	o, card, err := c.Sim.Options()
	if err != nil {
		return simcuda.Config{}, err
	}
	return simcuda.Config{Card: card, Devices: c.Devices, Checks: o.Checks, Seed: o.Seed, Schedule: o.Schedule, Numerics: o.Numerics,
		StepLimit: o.StepLimit, LateEffects: c.Late, Collect: true, Counters: true, Output: c.Stdout}, nil
}

// program runs the program and gives it the signals that this process gets.
func (x *run) program(ctx context.Context, path, socket string) (*os.ProcessState, error) {
	cmd := exec.CommandContext(ctx, path, x.cfg.Command[1:]...)
	cmd.Args[0] = x.cfg.Command[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.cfg.Stdin, x.cfg.Stdout, x.cfg.Stderr
	cmd.Env = append(os.Environ(), "WARPLINE_SIM_EXEC="+socket, "LD_LIBRARY_PATH="+joined(x.dir, os.Getenv("LD_LIBRARY_PATH")))
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				if !x.cfg.Terminal || s != os.Interrupt && s != syscall.SIGQUIT { // of these a terminal tells both
					cmd.Process.Signal(s)
				}
			}
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return cmd.ProcessState, err
}

// joined is a list of folders for the loader, which takes an empty one for the current folder.
func joined(dir, list string) string { return strings.TrimSuffix(dir+":"+list, ":") }

// accept begins a session for each process that connects.
func (x *run) accept(l *net.UnixListener) {
	defer x.wg.Done()
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		x.wg.Add(1)
		go func() {
			defer x.wg.Done()
			x.converse(conn)
		}()
	}
}

// begin adds a session, unless the program has ended.
func (x *run) begin(s *session) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		x.sessions = append(x.sessions, s)
	}
	return !x.ended
}

// end ends what is left of the program's sessions: those of processes that it left behind.
func (x *run) end(l *net.UnixListener) {
	l.Close()
	x.mu.Lock()
	x.ended = true
	sessions := x.sessions
	x.mu.Unlock()
	for _, s := range sessions {
		s.close()
	}
	x.wg.Wait()
}

// note tells the user something at once, and at the end.
func (x *run) note(format string, args ...any) {
	x.say(format, args...)
	x.report.add(fmt.Sprintf(format, args...))
}

// say tells the user something at once.
func (x *run) say(format string, args ...any) {
	fmt.Fprintf(x.cfg.Stderr, "warpline sim exec: "+format+"\n", args...)
}
