package fuzztest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
)

// writeInput writes an input to the corpus of a target, below the working directory, in a file
// named after its hash.
func writeInput(target string, args []reflect.Value) (name string, err error) {
	text := corpusText(args)
	dir := filepath.Join("testdata", "fuzz", target)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	name = filepath.Join(dir, fmt.Sprintf("%x", sum[:8]))
	return name, os.WriteFile(name, text, 0o666)
}

// corpusText returns an input in the format of Go's corpus files: a line with the version, then one
// line with a Go expression for each value.
func corpusText(args []reflect.Value) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "go test fuzz v1")
	for _, v := range args {
		switch v.Kind() {
		case reflect.Slice:
			fmt.Fprintf(&b, "[]byte(%q)\n", v.Bytes())
		case reflect.String:
			fmt.Fprintf(&b, "string(%q)\n", v.String())
		case reflect.Float32: // by its bits: there are many NaNs
			fmt.Fprintf(&b, "math.Float32frombits(%#x)\n", math.Float32bits(v.Interface().(float32)))
		case reflect.Float64:
			fmt.Fprintf(&b, "math.Float64frombits(%#x)\n", math.Float64bits(v.Float()))
		default:
			fmt.Fprintf(&b, "%s(%v)\n", v.Type(), v)
		}
	}
	return b.Bytes()
}
