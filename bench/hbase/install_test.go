package main

import (
	"strings"
	"testing"
)

func TestInstallNamesMissingProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := install(t.TempDir()); err == nil || !strings.Contains(err.Error(), "mvn") {
		t.Errorf("without Maven: %v", err)
	}
}
