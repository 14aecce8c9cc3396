package nearest

import (
	"errors"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"scan", "get", "count", "compact", "describe", "drop"}
	for word, want := range map[string]string{"sacn": "scan", "scann": "scan", "cuont": "count",
		"comapct": "compact", "desc": "describe",
		"describ": "describe", "got": "get", "frob": "", "": "", "x": "", "drag": "", "dorp": "drop", "tcs": ""} {
		if got := Of(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1},
		{"abc", "xabc", 1}, {"abc", "axc", 1},
		{"kitten", "sitting", 3}, {"tabel", "table", 1}} {
		if got := typingErrors(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
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
		if got := Hint(c.word, c.names); got != c.want {
			t.Errorf("%s of %q: got %s, want %s", c.word, c.names, got, c.want)
		}
	}
}

func TestErrorComparesNamesOnlyForItsText(t *testing.T) {
	missing, asked := errors.New("no such table"), 0
	err := Error(missing, "tre", func() []string { asked++; return []string{"tree"} })
	if !errors.Is(err, missing) || asked != 0 {
		t.Errorf("%d lists of names were made for errors.Is, which is %v", asked, errors.Is(err, missing))
	}
	if got, want := err.Error(), `no such table; did you mean "tree"?`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
