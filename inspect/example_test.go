package inspect_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/inspect"
	"github.com/oribi-db/oribi/vfs"
)

// A program serves the pages of its store next to its own.
func ExampleHandler() {
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	mux := http.NewServeMux()
	mux.Handle("/oribi/", inspect.Handler(store, inspect.Prefix("/oribi"), inspect.Name("shop")))

	request := httptest.NewRequest(http.MethodGet, "http://localhost/oribi/", nil)
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, request)
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
