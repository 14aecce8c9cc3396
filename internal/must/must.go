// Package must ends a test whose result is not the expected one. It is for tests only.
package must

import (
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
)

// T is a test, a benchmark, or a fuzz test.
type T interface {
	Helper() // takes a microsecond: only before Fatal
	Fatal(args ...any)
}

// Do ends the test if err is not nil. The failure starts with about, which names the case and
// contains no other error.
func Do(t T, err error, about ...any) {
	for _, a := range about {
		if _, isError := a.(error); isError || a == nil {
			t.Fatal("Do has one error, and it is the second argument")
		}
	}
	if err != nil {
		t.Helper()
		t.Fatal(title(about) + err.Error())
	}
}

// Get returns the result of a call as a function, which ends the test if err is not nil:
//
//	table := must.Get(store.Table("t"))(t)
func Get[V any](v V, err error) func(T) V {
	return func(t T) V {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}

// Get2 is Get for a call with two results.
func Get2[V, W any](v V, w W, err error) func(T) (V, W) {
	return func(t T) (V, W) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v, w
	}
}

// Hex returns the bytes of hexadecimal digits. It leaves out white space, lines between fields, and
// a leading 0x.
func Hex(t T, text string) []byte {
	digits := strings.ReplaceAll(strings.TrimPrefix(text, "0x"), "|", "")
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
	return b
}

// All returns the values of seq. It ends the test at the first error.
func All[V any](t T, seq iter.Seq2[V, error]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for v, err := range seq {
			if Do(t, err); !yield(v) {
				return
			}
		}
	}
}

// Err returns the error of a call with one result.
func Err[V any](_ V, err error) error { return err }

// Err2 returns the error of a call with two results.
func Err2[V, W any](_ V, _ W, err error) error { return err }

// Fail ends the test if err is not want, as [errors.Is] compares them. The failure starts with
// about, which names the case.
func Fail(t T, err, want error, about ...any) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Fatal(title(about) + fmt.Sprintf("error %v, want %v", err, want))
	}
}

// Refuse ends the test if err is nil. The failure starts with about, which names the case.
func Refuse(t T, err error, about ...any) {
	if err == nil {
		t.Helper()
		t.Fatal(title(about) + "no error")
	}
}

// Contain ends the test if text does not contain part. The failure starts with about, which names
// the case.
func Contain(t T, text, part string, about ...any) {
	if !strings.Contains(text, part) {
		t.Helper()
		t.Fatal(title(about) + fmt.Sprintf("%q is not in\n%s", part, text))
	}
}

// Equal ends the test if got and want are not equal, as [reflect.DeepEqual] compares them, except
// that a slice without elements equals nil. The failure starts with about, which names the case.
func Equal[V any](t T, got, want V, about ...any) {
	if reflect.DeepEqual(got, want) || emptySlice(got) && emptySlice(want) {
		return
	}
	t.Helper()
	format := "got %+v, want %+v"
	switch text := any(got).(type) {
	case string:
		format = "got %.300q, want %.300q"
		if strings.Contains(text, "\n") {
			format = "got\n%s\nwant\n%s"
		}
	case []byte, []string:
		format = "got %.300q, want %.300q"
	}
	t.Fatal(title(about) + fmt.Sprintf(format, got, want))
}

func emptySlice(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Slice && r.Len() == 0
}

// title is about as the start of a message.
func title(about []any) string {
	if len(about) == 0 {
		return ""
	}
	for i, v := range about {
		if b, ok := v.([]byte); ok {
			about[i] = strconv.QuoteToASCII(string(b))
		}
	}
	return strings.TrimSpace(fmt.Sprintln(about...)) + ": "
}
