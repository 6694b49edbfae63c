// `bcryptprimitives.dll` for a Wine before version 9, which has none: the random numbers that Rust's library asks for.
__declspec(dllimport) unsigned char SystemFunction036(void *data, unsigned long size);
__declspec(dllexport) int ProcessPrng(unsigned char *data, unsigned long long size) {
    return SystemFunction036(data, (unsigned long)size);
}
