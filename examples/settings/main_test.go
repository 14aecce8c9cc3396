package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestOutput(t *testing.T) {
	want, err := os.ReadFile("output.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(context.Background(), &out, filepath.Join(t.TempDir(), "store")); err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("got\n%swant, in output.txt,\n%s", &out, want)
	}
}
