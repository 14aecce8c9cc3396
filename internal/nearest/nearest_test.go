package nearest

import (
	"errors"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestNearest(t *testing.T) {
	names := []string{"scan", "get", "count", "compact", "describe", "drop"}
	for word, want := range map[string]string{"sacn": "scan", "scann": "scan", "cuont": "count",
		"comapct": "compact", "desc": "describe",
		"describ": "describe", "got": "get", "frob": "", "": "", "x": "", "drag": "", "dorp": "drop", "tcs": ""} {
		must.Equal(t, Of(word, names), want, word)
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1},
		{"abc", "xabc", 1}, {"abc", "axc", 1},
		{"kitten", "sitting", 3}, {"tabel", "table", 1}} {
		must.Equal(t, typingErrors(c.a, c.b), c.want, c.a, "to", c.b)
	}
}

func TestHintsNameTheNearestOrList(t *testing.T) {
	for _, c := range []struct {
		word  string
		names []string
		want  string
	}{
		{"nmae", []string{"id", "name"}, `; did you mean "name"?`},
		{"ID", []string{"id", "name"}, `; did you mean "id"?`},
		{"other", []string{"id", "name"}, `; there is "id", "name"`}, {"x", nil, ""},
		{"other", []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"},
			`; there is "1", "2", "3", "4", "5", "6", "7", "8", …`},
	} {
		must.Equal(t, Hint(c.word, c.names), c.want, c.word, "of", c.names)
	}
}

func TestErrorComparesNamesOnlyForItsText(t *testing.T) {
	missing, asked := errors.New("no such table"), 0
	err := Error(missing, "tre", func() []string { asked++; return []string{"tree"} })
	if !errors.Is(err, missing) || asked != 0 {
		t.Errorf("%d lists of names were made for errors.Is, which is %v", asked, errors.Is(err, missing))
	}
	must.Equal(t, err.Error(), `no such table; did you mean "tree"?`)
}
