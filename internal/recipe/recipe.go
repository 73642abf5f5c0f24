// Package recipe has what a run can learn by, by name: a table of optimizers and one of learning rates. A row says what it
// is told besides what all of them are; the command's flags, their bounds and their help follow from the rows.
package recipe

import (
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Setting is a number that a row is told, by the name that its flag has and config.json. Rows may share a setting; its
// default is each row's own.
type Setting struct {
	Name    string
	Default float64
	Least   float64
	Below   float64 // excluded
	Usage   string  // for people; empty where the name says it
}

// Values are settings by name.
type Values map[string]float64

// of is what was given, or else the row's default.
func (v Values) of(list []Setting) Values {
	all := Values{}
	for _, s := range list {
		if given, ok := v[s.Name]; ok {
			all[s.Name] = given
		} else {
			all[s.Name] = s.Default
		}
	}
	return all
}

// Owner is a row that has a setting.
type Owner struct {
	Flag, Name string // as in --optimizer adam
	Setting    Setting
}

// Flag is a setting with all of its owners.
type Flag struct {
	Setting
	Owners []Owner
}

// Flags are the settings of all rows, each name once, in the order of the tables.
func Flags() (list []Flag) {
	for _, o := range owners() {
		i := slices.IndexFunc(list, func(f Flag) bool { return f.Name == o.Setting.Name })
		if i < 0 {
			i, list = len(list), append(list, Flag{Setting: o.Setting})
		}
		list[i].Owners = append(list[i].Owners, o)
	}
	return list
}

// owners are all rows with each of their settings.
func owners() (list []Owner) {
	for _, r := range Optimizers {
		for _, s := range r.Settings {
			list = append(list, Owner{"optimizer", r.Name, s})
		}
	}
	for _, r := range Schedules {
		for _, s := range r.Settings {
			list = append(list, Owner{"schedule", r.Name, s})
		}
	}
	return list
}

// Of names the owners for people: "--optimizer adam and adamw".
func (f *Flag) Of() string {
	text, flag := "", ""
	for i, o := range f.Owners {
		switch {
		case o.Flag != flag:
			text += " and --" + o.Flag + " "
		case i == len(f.Owners)-1 || f.Owners[i+1].Flag != flag:
			text += " and "
		default:
			text += ", "
		}
		text, flag = text+o.Name, o.Flag
	}
	return strings.TrimPrefix(text, " and ")
}

// Help is a line of help: whose the setting is, what it means, and its defaults where they are not 0.
func (f *Flag) Help() string {
	text := "of " + strings.ReplaceAll(f.Of(), "--optimizer ", "")
	if f.Usage != "" {
		text += ": " + f.Usage
	}
	byDefault := map[float64][]string{}
	var defaults []float64
	for _, o := range f.Owners {
		v := o.Setting.Default
		if byDefault[v] = append(byDefault[v], o.Name); len(byDefault[v]) == 1 {
			defaults = append(defaults, v)
		}
	}
	if len(defaults) == 1 && defaults[0] != 0 {
		return text + " (default " + number(defaults[0]) + ")"
	}
	var parts []string
	for _, v := range defaults {
		if len(defaults) > 1 {
			parts = append(parts, advice.List(byDefault[v])+" "+number(v))
		}
	}
	if len(parts) > 0 {
		text += " (default " + strings.Join(parts, ", ") + ")"
	}
	return text
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
