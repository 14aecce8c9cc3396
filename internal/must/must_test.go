package must

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"testing"
)

// recorder records the failures of a test that does not end.
type recorder []string

func (r *recorder) Helper()           {}
func (r *recorder) Fatal(args ...any) { *r = append(*r, fmt.Sprint(args...)) }

func TestFailures(t *testing.T) {
	var r recorder
	Do(&r, io.EOF)
	Do(&r, io.EOF, "case", 6)
	Do(&r, nil, io.EOF)
	Refuse(&r, Err2(1, 2, nil), "case", []byte("a\n"))
	Contain(&r, "ab", "c")
	Get(1, io.EOF)(&r)
	Get2(1, 2, io.EOF)(&r)
	for range All(&r, maps.All(map[int]error{1: io.EOF})) {
		break
	}
	Fail(&r, Err(1, nil), io.EOF, "case", 7)
	Equal(&r, 1, 2)
	Equal(&r, "a", "b", "case")
	Equal(&r, []byte("a\n"), nil)
	Equal(&r, "a\nb", "c")
	want := recorder{"EOF", "case 6: EOF", "Do has one error, and it is the second argument", `case "a\n": no error`, "\"c\" is not in\nab",
		"EOF", "EOF", "EOF", "case 7: error <nil>, want EOF", "got 1, want 2",
		`case: got "a", want "b"`, `got "a\n", want ""`, "got\na\nb\nwant\nc"}
	Equal(t, r, want)
	if fmt.Sprint(r) != fmt.Sprint(want) {
		t.Fatalf("got %q, want %q", r, want)
	}
}

func TestSuccesses(t *testing.T) {
	Do(t, nil)
	Do(t, nil, "case", 1)
	Refuse(t, io.EOF)
	Contain(t, "abc", "bc")
	Equal(t, Hex(t, "0x61 62|63\n"), []byte("abc"))
	Equal(t, Get("a", nil)(t), "a")
	a, b := Get2(1, 2, nil)(t)
	Equal(t, a+b, 3)
	Equal(t, []int{}, nil)
	Fail(t, fmt.Errorf("read: %w", io.EOF), io.EOF)
	Fail(t, errors.Join(nil), nil)
}
