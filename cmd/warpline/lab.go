package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/lab"
	"github.com/warpline-ml/warpline/internal/lesson"
)

const labLong = `Serve the lab in a browser: machines, kernels and memory to play with, and lessons. Everything it shows is computed here,
by the commands that each page names; nothing is fetched. It is for this machine alone, and for whom has the address that is printed:
the token in it becomes a cookie.`

// labFlags are what lab is told.
type labFlags struct {
	listen, dir string
	closed      bool // no browser is opened
}

func newLab() *cobra.Command {
	var f labFlags
	cmd := &cobra.Command{
		Use: "lab", Short: "Serve pages to explore machines, kernels and memory, and lessons", Long: labLong,
		Example: "  warpline lab\n  warpline lab --listen 127.0.0.1:8080 --no-open",
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runLab(cmd, &f) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "address of this machine; port 0 for any that is free")
	cmd.Flags().BoolVar(&f.closed, "no-open", false, "open no browser")
	cmd.Flags().StringVar(&f.dir, "dir", "", "folder for progress and for files that are dropped on pages (default "+filepath.Join("~", ".config", "warpline")+" or where this system has such)")
	cmd.AddCommand(newArchitecture(), newRace(), newTransfer(), newTimeline())
	return cmd
}

// runLab serves until it is interrupted, which is how it ends well.
func runLab(cmd *cobra.Command, f *labFlags) error {
	dir, err := labDir(f.dir)
	if err != nil {
		return err
	}
	s := newScreen(cmd)
	server, err := lab.New(lab.Config{Listen: f.listen, Dir: dir, Command: execute, Version: version()})
	if err != nil {
		return err
	}
	defer server.Close()
	site, err := addLessons(server, dir)
	if err != nil {
		return err
	}
	defer site.Close()
	server.Serve()
	if err := s.emit(map[string]string{"url": server.URL()}); err != nil {
		return err
	}
	s.say("lab: %s", server.URL())
	s.say("Ctrl-C ends it")
	if s.terminal && !f.closed && s.json == nil {
		openBrowser(server.URL())
	}
	<-cmd.Context().Done()
	server.Close() // before the lessons, which would begin what pages ask meanwhile
	return nil
}

// addLessons gives a lab the pages of the lessons.
func addLessons(server *lab.Server, dir string) (*lesson.Site, error) {
	site := &lesson.Site{Dir: dir, Version: version(), Frame: func(w http.ResponseWriter, r *http.Request, title, body string, scripts, styles []string) {
		server.Write(w, r, lab.Page{Title: title, Body: body, Scripts: scripts, Styles: styles})
	}}
	h, err := site.Handler()
	if err != nil {
		return nil, advice.Explain(err, "cells run this program again: start it by its path")
	}
	for _, at := range []string{"/learn/", "/quiz/", "/exercise/", "/api/cells/", "/api/runs/"} {
		server.Handle(at, h)
	}
	server.Link("/learn/", "Lessons")
	server.Link("/exercise/", "Exercises")
	return site, nil
}

// labDir is the folder of a person's progress: the one given, or the usual one of the system. It is made.
func labDir(given string) (string, error) {
	if given == "" {
		base, err := os.UserConfigDir()
		if err != nil {
			return "", advice.Explain(err, "give a folder with --dir")
		}
		given = filepath.Join(base, "warpline")
	}
	if err := os.MkdirAll(given, 0o700); err != nil {
		return "", advice.Explain(err, "give a folder that can be written with --dir")
	}
	return filepath.Abs(given)
}

// openBrowser asks the system to show a page. Whoever sees none has the address.
func openBrowser(url string) {
	words := []string{"xdg-open", url}
	switch runtime.GOOS {
	case "darwin":
		words[0] = "open"
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	}
	if cmd := exec.Command(words[0], words[1:]...); cmd.Start() == nil {
		go cmd.Wait()
	}
}
