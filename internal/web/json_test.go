package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBody: what is JSON of the fields that are asked for, and not too large, is taken; of all else there is an error with what to do.
func TestBody(t *testing.T) {
	for body, want := range map[string]int{
		`{"n":7}`: http.StatusOK, `{"n":8}` + strings.Repeat(" ", 100): http.StatusOK,
		`{"n":` + strings.Repeat("1", 100) + `}`: http.StatusRequestEntityTooLarge,
		"":                                       http.StatusBadRequest, "{": http.StatusBadRequest, `{"m":1}`: http.StatusBadRequest, `{"n":"x"}`: http.StatusBadRequest, `[]`: http.StatusBadRequest,
	} {
		for _, from := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body))} {
			var v struct {
				N int `json:"n"`
			}
			w := httptest.NewRecorder()
			if Body(w, httptest.NewRequest(http.MethodPost, "/", from), 64, &v) != (want == http.StatusOK) {
				t.Errorf("%.20s: %+v", body, v)
			}
			if w.Code != want || w.Code != http.StatusOK && (!strings.Contains(w.Body.String(), `"error":`) || !strings.Contains(w.Body.String(), `"hint":`)) {
				t.Errorf("%.20s: %d %s", body, w.Code, w.Body)
			}
		}
	}
}
