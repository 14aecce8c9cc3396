package jsonin

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll returns "line:value" of each record, with "!" before text that is not JSON, and the error
// that ended the reading.
func readAll(in io.Reader, most int) string {
	r := NewRecords(in, most)
	var list []string
	for {
		value, err := r.Next()
		bad, ok := errors.AsType[*Error](err)
		switch {
		case ok:
			list = append(list, fmt.Sprintf("%d:!%s", r.Line, bad.Reason()))
		case err == io.EOF:
			return strings.Join(list, " ")
		case err != nil:
			return strings.Join(append(list, fmt.Sprintf("%d: %v", r.Line, err)), " ")
		default:
			list = append(list, fmt.Sprintf("%d:%s", r.Line, value))
		}
	}
}

func TestRecordsAreLinesOrElements(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"\n \n", ""}, {"{}\n\n[1]\n", "1:{} 3:[1]"},
		{"\n{}\n{\n{}", "2:{} 3:!" + errGoesOn.Error() + " 4:{}"}, {"{}\n{", "1:{} 2:!not JSON: unexpected EOF"},
		{"\xef\xbb\xbf{}", "1:{}"}, {"[]", ""}, {"\n[\n]\n", ""}, {"\xef\xbb\xbf[{}]", "1:{}"},
		{"[{\"a\":1},\n{\"a\":2}]\n", `1:{"a":1} 2:{"a":2}`}, {"\n[\n  {},\n\n {}\n]", "3:{} 5:{}"},
		{`[1,"x",[2]]`, `1:1 1:"x" 1:[2]`},
		{"[{\"a\":1,\"a\":2},\n{}]", `1:!the name "a" appears twice 2:{}`},
		{"[{},\n{}", "1:{} 2:{} 2: the array is not closed: the file is truncated"},
		{"[", "1: the array is not closed: the file is truncated"},
		{"[{}]\n[{}]", "1:{} 2: text after the array"}, {"[{}]\nx", "1:{} 2: text after the array"},
	} {
		if got := readAll(strings.NewReader(c.in), 100); got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
		if got := readAll(iotest.OneByteReader(strings.NewReader(c.in)), 100); got != c.want {
			t.Errorf("%q byte by byte: got %s, want %s", c.in, got, c.want)
		}
	}
}

func TestRecordsReportTheInputsError(t *testing.T) {
	broken := errors.New("broken")
	for _, text := range []string{"[{},", "[", "[{}]", "{}\n"} {
		r := NewRecords(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), 100)
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, broken) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestRecordsBoundAnElement(t *testing.T) {
	got := readAll(strings.NewReader(`["`+strings.Repeat("x", 4<<20)+`"]`), 100)
	if !strings.Contains(got, "longer than") {
		t.Errorf("got %.100s", got)
	}
}
