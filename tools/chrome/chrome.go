// Package chrome looks at pages of this program with Chromium, and keeps what they complain of.
package chrome

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Main is a command that looks at pages: a folder for pictures, which it makes, and others, at least so many in all.
func Main(usage string, least int, look func(ctx context.Context, out string, others []string) error) {
	log.SetFlags(0)
	if len(os.Args) <= least {
		log.Fatal(usage)
	}
	ctx, cancel := browser()
	err := os.MkdirAll(os.Args[1], 0o777)
	if err == nil {
		err = look(ctx, os.Args[1], os.Args[2:])
	}
	cancel()
	if err != nil {
		log.Fatal(err)
	}
}

// Begin starts a program that serves, and returns where its page is: its first line is JSON with a url.
func Begin(line []string) (*exec.Cmd, string, error) {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stderr = nil
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	first := bufio.NewReader(lines)
	text, err := first.ReadString('\n')
	if err != nil {
		return nil, "", fmt.Errorf("%s says nothing: %w", line[0], err)
	}
	go first.WriteTo(io.Discard)
	var told struct{ URL string }
	err = json.Unmarshal([]byte(text), &told)
	return cmd, told.URL, err
}

// browser starts Chromium.
func browser() (context.Context, context.CancelFunc) {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU)
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			opts = append(opts, chromedp.ExecPath(path))
			break
		}
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel2 := chromedp.NewContext(ctx)
	ctx, cancel3 := context.WithTimeoutCause(ctx, 20*time.Minute, errors.New("all together took 20 minutes"))
	return ctx, func() { cancel3(); cancel2(); cancel() }
}

// Complaints are what must not be.
type Complaints struct {
	sync.Mutex
	list    []complaint
	refused map[string]bool
}

// complaint is one of them, of an address where it is that this answers with an error.
type complaint struct{ text, url string }

// Add adds one.
func (c *Complaints) Add(format string, args ...any) {
	c.add(complaint{text: fmt.Sprintf(format, args...)})
}

func (c *Complaints) add(x complaint) {
	c.Lock()
	defer c.Unlock()
	c.list = append(c.list, x)
}

// Refused tells that an address was right to answer with an error: what the console says of it is no complaint, before or after.
func (c *Complaints) Refused(url string) {
	c.Lock()
	defer c.Unlock()
	if c.refused == nil {
		c.refused = map[string]bool{}
	}
	c.refused[url] = true
}

// Err is all of them, or nil.
func (c *Complaints) Err() error {
	c.Lock()
	defer c.Unlock()
	var all []string
	for _, x := range c.list {
		if x.url == "" || !c.refused[x.url] {
			all = append(all, x.text)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return errors.New(strings.Join(all, "\n"))
}

// Listen collects what a tab complains of.
func Listen(ctx context.Context, url string) *Complaints {
	c := new(Complaints)
	chromedp.ListenTarget(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventConsoleAPICalled:
			if ev.Type == runtime.APITypeError || ev.Type == runtime.APITypeWarning {
				c.Add("console: %s %s", ev.Type, ev.Args[0].Value)
			}
		case *runtime.EventExceptionThrown:
			c.Add("exception: %v", ev.ExceptionDetails)
		case *cdplog.EventEntryAdded:
			if ev.Entry.Level == cdplog.LevelError {
				x := complaint{text: fmt.Sprintf("log: %s %s", ev.Entry.Text, ev.Entry.URL)}
				if ev.Entry.Source == cdplog.SourceNetwork {
					x.url = ev.Entry.URL
				}
				c.add(x)
			}
		case *network.EventRequestWillBeSent:
			if u := ev.Request.URL; !strings.HasPrefix(u, url) && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:") {
				c.Add("%s is fetched", u)
			}
		}
	})
	return c
}

// Longest is how long anything may take that is waited for: machines that test are busy.
const Longest = time.Minute

// Run does actions in a tab that has begun, each within Longest.
func Run(ctx context.Context, actions ...chromedp.Action) error {
	for _, a := range actions {
		if err := within(ctx, func(ctx context.Context) error { return chromedp.Run(ctx, a) }); err != nil {
			return err
		}
	}
	return nil
}

func within(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Longest, fmt.Errorf("not within %s", Longest))
	defer cancel()
	err := do(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

// Until waits for an expression to be true, within Longest. One that throws is not true yet, and so is one of a page that goes.
func Until(what, expression string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		var last error
		err := within(ctx, func(ctx context.Context) error {
			for {
				var holds bool
				if err := chromedp.Evaluate("!!("+expression+")", &holds).Do(ctx); err == nil && holds {
					return nil
				} else if ctx.Err() == nil {
					last = err
				}
				if err := chromedp.Sleep(50 * time.Millisecond).Do(ctx); err != nil {
					return err
				}
			}
		})
		if err == nil {
			return nil
		}
		return fmt.Errorf("%s: %w", what, errors.Join(err, last))
	})
}

// Scheme makes pages light or dark.
func Scheme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}
