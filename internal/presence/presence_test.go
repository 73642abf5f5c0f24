package presence

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestMain lets a test run this program again as a process that answers until its input ends.
func TestMain(m *testing.M) {
	if os.Getenv("PRESENCE_TEST_CHILD") == "" {
		os.Exit(m.Run())
	}
	AddDevice(func() Device {
		return Device{Name: "sim:0", Model: "A card", Total: 80 << 30, Allocated: 3 << 20, Reserved: 20 << 20}
	})
	SetRun(func() Run { return Run{Task: "digits", Step: 7, Steps: 100} })
	for range 3 {
		Stepped()
		time.Sleep(10 * time.Millisecond)
	}
	bufio.NewReader(os.Stdin).ReadByte()
}

// folder is a short one: names of sockets are.
func folder(t *testing.T) string {
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// inFolder asks the processes of the test's own folder: others run on the machine.
func inFolder(wait time.Duration) []Process {
	sweep(Dir())
	return askAll(sockets(Dir()), wait)
}

// child starts a process that answers, and waits until it does.
func child(t *testing.T) (*exec.Cmd, Process) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PRESENCE_TEST_CHILD=1")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 400 {
		for _, p := range inFolder(time.Second) {
			if p.PID == cmd.Process.Pid {
				return cmd, p
			}
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatal("the process does not answer")
	return nil, Process{}
}

func TestOtherProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its folder is not chosen by a variable")
	}
	dir := folder(t)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	cmd, p := child(t)
	if !slices.ContainsFunc(All(time.Second), func(q Process) bool { return q.PID == cmd.Process.Pid }) {
		t.Error("the process is not among all")
	}
	if len(p.Devices) != 1 || p.Devices[0].Name != "sim:0" || p.Devices[0].Allocated != 3<<20 || p.Devices[0].Reserved != 20<<20 {
		t.Errorf("devices %+v", p.Devices)
	}
	if p.Run == nil || p.Run.Step != 7 || p.Run.Steps != 100 || p.Steps != 3 || p.Pace <= 0 || p.Command != filepath.Base(os.Args[0]) || p.Started.IsZero() {
		t.Errorf("%+v", p)
	}
	socket := sockets(filepath.Join(dir, "warpline"))[0]
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if all := inFolder(time.Second); len(all) != 0 {
		t.Errorf("a process that has ended answers: %+v", all)
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(socket, old, old); err != nil {
		t.Fatal(err)
	}
	inFolder(time.Second)
	if left := sockets(filepath.Join(dir, "warpline")); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// TestUnwritable: a process that cannot answer goes on.
func TestUnwritable(t *testing.T) {
	file := filepath.Join(folder(t), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", file)
	answer() // returns
	if all := inFolder(time.Second); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// TestOpenFolder: nothing is put where others could look.
func TestOpenFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are the system's")
	}
	dir := folder(t)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if err := os.Mkdir(Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	answer() // returns
	if left := sockets(Dir()); len(left) != 0 {
		t.Errorf("%q", left)
	}
}

// TestHostile: answers that are none, endless, or late are not believed, and are not waited for.
func TestHostile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its folder is not chosen by a variable")
	}
	t.Setenv("XDG_RUNTIME_DIR", folder(t))
	if err := private(Dir()); err != nil {
		t.Fatal(err)
	}
	for name, reply := range map[string]func(c net.Conn){
		"words": func(c net.Conn) { c.Write([]byte("hello")); c.Close() },
		"endless": func(c net.Conn) {
			for _, err := c.Write([]byte(`{"command":"`)); err == nil; _, err = c.Write(make([]byte, 1<<16)) {
			}
		},
		"late": func(net.Conn) {},
	} {
		l, err := net.Listen("unix", filepath.Join(Dir(), name+".sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				go reply(c)
			}
		}()
	}
	if all := inFolder(200 * time.Millisecond); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}
