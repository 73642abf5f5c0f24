package vet

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

// The part of SARIF 2.1.0 that code hosts read (OASIS standard, 2020; sections 3.13, 3.19, 3.20, 3.27, 3.49, 3.58).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Columns     string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		URI     string      `json:"informationUri"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Name  string    `json:"name"`
		Short sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		Rule      string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Line   int `json:"startLine"`
		Column int `json:"startColumn"`
	}
)

// InFile is what was found in a file.
type InFile struct {
	File  string
	Found []Found
	Note  string // what is to be said of it beside, or empty
}

// WriteSARIF writes findings as code hosts read them, what is to be said of files beside, and why some were not read. A notebook has no
// regions: code hosts count its lines in JSON, so that the text names the cell and its line.
func WriteSARIF(w io.Writer, version string, files []InFile, unread []error) error {
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "warpline vet", URI: "https://github.com/warpline-ml/warpline", Version: version, Rules: []sarifRule{}}},
		Invocations: []sarifInvocation{{Successful: len(unread) == 0}}, Columns: "unicodeCodePoints", Results: []sarifResult{},
	}
	for _, err := range unread {
		run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifNotification{"error", sarifText{err.Error()}})
	}
	for _, r := range Rules() {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{r.ID, r.Name, sarifText{r.Why}})
	}
	for _, f := range files {
		if f.Note != "" {
			run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifNotification{"warning", sarifText{f.Note}})
		}
		for _, one := range f.Found {
			text, region := one.Title+". To do: "+one.Fix, &sarifRegion{one.Line, max(one.Column, 1)}
			if strings.HasSuffix(f.File, ".ipynb") {
				text, region = one.Finding.Line+": "+text, nil
			}
			run.Results = append(run.Results, sarifResult{
				Rule: one.Rule, Level: level(one.Confidence), Message: sarifText{text},
				Locations: []sarifLocation{{sarifPhysical{sarifArtifact{uri(cmp.Or(one.File, f.File))}, region}}},
			})
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// uri is a file's name as a reference: relative, or with its scheme.
func uri(name string) string {
	u := url.URL{Path: filepath.ToSlash(name)}
	if filepath.IsAbs(name) {
		u.Scheme = "file"
		u.Path = "/" + strings.TrimPrefix(u.Path, "/") // of Windows, before the drive
	}
	return u.String()
}

// level is a confidence as SARIF has it.
func level(c finding.Confidence) string {
	switch c {
	case finding.High:
		return "error"
	case finding.Medium:
		return "warning"
	}
	return "note"
}
