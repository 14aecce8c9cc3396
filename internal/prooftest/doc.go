// Package prooftest lists the proofs that test whole stores: random histories compared with a
// model, crashes, disk faults, damaged files, and kills of the real command. Tests run each proof
// for seconds; internal/proof runs it for hours.
//
// The packages below this one:
//
//	crash, damage, faults, kill, memory   one kind of harm each
//	history                               generates and runs random histories, compares with a model
//	model                                 the expected contents and answers of a store
//	script                                a history as data and as text
//	values, files                         random schemas and cells; directory trees
//
// None of them imports package testing. No type is safe for concurrent use unless its comment says
// so.
package prooftest
