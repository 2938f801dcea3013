// The functions of owner_test.go without a body are those of another package.
