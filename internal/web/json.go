package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Send answers with JSON.
func Send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who asked may have gone
}

// failure is an error for scripts.
type failure struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// Refuse answers with an error and, where it says so, what to do, as JSON.
func Refuse(w http.ResponseWriter, status int, err error) {
	Send(w, status, failure{err.Error(), advice.HintOf(err)})
}

// Body reads the JSON of a request whose body has at most so many bytes, or refuses it and reports so.
func Body(w http.ResponseWriter, r *http.Request, most int64, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		Refuse(w, http.StatusRequestEntityTooLarge, advice.Failf(fmt.Sprintf("%d bytes are taken", large.Limit), "the request is too large"))
	case err != nil:
		Refuse(w, http.StatusBadRequest, advice.Failf("docs/lab.md and docs/learn.md have what is asked for", "the request is no JSON that is asked for: %v", err))
	}
	return err == nil
}
