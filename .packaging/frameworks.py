"""Stubs of the frameworks of macOS: texts that tell the linker which library has a function (`tbd` files).

The programs are linked without the SDK of Apple. `SYMBOLS` lists what the crates call; the linker names any other. The
system has the functions themselves. Zig brings the stub of its C library.
"""

from pathlib import Path

SYMBOLS = {
    "CoreFoundation": """
        CFArrayAppendValue CFArrayCreate CFArrayCreateMutable CFArrayGetCount CFArrayGetValueAtIndex
        CFArrayInsertValueAtIndex CFArrayRemoveValueAtIndex CFAttributedStringCreateMutable CFBundleCopyBundleURL
        CFBundleCopyExecutableURL CFBundleCopyPrivateFrameworksURL CFBundleCopyResourcesDirectoryURL
        CFBundleCopySharedSupportURL CFBundleCreate CFBundleGetBundleWithIdentifier CFBundleGetFunctionPointerForName
        CFBundleGetInfoDictionary CFBundleGetMainBundle CFCopyDescription CFDataCreate CFDataGetBytePtr CFDataGetLength
        CFDataGetTypeID CFDateCreate CFDateGetAbsoluteTime CFDictionaryAddValue CFDictionaryCreate
        CFDictionaryCreateMutable CFDictionaryGetCount CFDictionaryGetKeysAndValues CFDictionaryGetValueIfPresent
        CFDictionarySetValue CFEqual CFErrorCopyDescription CFErrorGetCode CFErrorGetDomain CFFileDescriptorCreate
        CFFileDescriptorCreateRunLoopSource CFFileDescriptorDisableCallBacks CFFileDescriptorEnableCallBacks
        CFFileDescriptorGetContext CFFileDescriptorGetNativeDescriptor CFFileDescriptorInvalidate
        CFFileDescriptorIsValid CFGetRetainCount CFGetTypeID CFMachPortCreateRunLoopSource CFNumberCreate
        CFNumberGetValue CFPropertyListCreateData CFPropertyListCreateWithData CFRelease CFRetain CFRunLoopAddObserver
        CFRunLoopAddSource CFRunLoopAddTimer CFRunLoopContainsObserver CFRunLoopContainsSource CFRunLoopContainsTimer
        CFRunLoopCopyCurrentMode CFRunLoopGetCurrent CFRunLoopGetMain CFRunLoopIsWaiting CFRunLoopRemoveObserver
        CFRunLoopRemoveSource CFRunLoopRemoveTimer CFRunLoopRun CFRunLoopRunInMode CFRunLoopStop CFRunLoopTimerCreate
        CFShow CFStringCompare CFStringCreateWithBytes CFStringCreateWithBytesNoCopy CFStringGetBytes
        CFStringGetCStringPtr CFStringGetLength CFTimeZoneCopyDefault CFTimeZoneGetName CFTimeZoneGetSecondsFromGMT
        CFURLCopyAbsoluteURL CFURLCopyFileSystemPath CFURLCopyLastPathComponent CFURLCreateCopyAppendingPathComponent
        CFURLCreateCopyDeletingLastPathComponent CFURLCreateFilePathURL CFURLCreateFileReferenceURL
        CFURLCreateFromFileSystemRepresentation CFURLCreateWithFileSystemPath CFURLGetFileSystemRepresentation
        CFURLGetString CFURLResourceIsReachable CFUUIDCreate kCFAbsoluteTimeIntervalSince1970 kCFAllocatorDefault
        kCFAllocatorNull kCFBooleanFalse kCFBooleanTrue kCFRunLoopDefaultMode kCFTypeArrayCallBacks
        kCFTypeDictionaryKeyCallBacks kCFTypeDictionaryValueCallBacks
    """,
    "CoreServices": """
        FSEventStreamCreate FSEventStreamGetDeviceBeingWatched FSEventStreamInvalidate FSEventStreamRelease
        FSEventStreamScheduleWithRunLoop FSEventStreamStart FSEventStreamStop FSEventsGetCurrentEventId
        FSEventsPurgeEventsForDeviceUpToEventId
    """,
    "Security": """
        AuthorizationCreate AuthorizationCreateFromExternalForm AuthorizationExecuteWithPrivileges
        AuthorizationMakeExternalForm CMSDecoderCopyAllCerts CMSDecoderCopyContent CMSDecoderCopyDetachedContent
        CMSDecoderCopySignerEmailAddress CMSDecoderCopySignerSigningTime CMSDecoderCopySignerStatus
        CMSDecoderCopySignerTimestamp CMSDecoderCopySignerTimestampCertificates CMSDecoderCopySignerTimestampWithPolicy
        CMSDecoderCreate CMSDecoderFinalizeMessage CMSDecoderGetNumSigners CMSDecoderIsContentEncrypted
        CMSDecoderSetDetachedContent CMSDecoderUpdateMessage CMSEncodeContent CMSEncoderAddRecipients
        CMSEncoderAddSignedAttributes CMSEncoderAddSigners CMSEncoderAddSupportingCerts
        CMSEncoderCopyEncapsulatedContentType CMSEncoderCopyEncodedContent CMSEncoderCopyRecipients
        CMSEncoderCopySignerTimestamp CMSEncoderCopySignerTimestampWithPolicy CMSEncoderCopySigners
        CMSEncoderCopySupportingCerts CMSEncoderCreate CMSEncoderGetCertificateChainMode CMSEncoderGetHasDetachedContent
        CMSEncoderSetCertificateChainMode CMSEncoderSetEncapsulatedContentTypeOID CMSEncoderSetHasDetachedContent
        CMSEncoderSetSignerAlgorithm CMSEncoderUpdateContent SSLCopyALPNProtocols SSLCopyCertificateAuthorities
        SSLCopyPeerTrust SSLCreateContext SSLGetDiffieHellmanParams SSLGetEnabledCiphers SSLGetNumberEnabledCiphers
        SSLGetNumberSupportedCiphers SSLGetPeerDomainName SSLGetPeerDomainNameLength SSLGetPeerID SSLGetSessionState
        SSLGetSupportedCiphers SSLSetCertificate SSLSetCertificateAuthorities SSLSetDiffieHellmanParams
        SSLSetEnabledCiphers SSLSetProtocolVersionMax SSLSetProtocolVersionMin SSLSetSessionTicketsEnabled
        SecAccessControlCreateWithFlags SecCertificateAddToKeychain SecCertificateCopyCommonName SecCertificateCopyData
        SecCertificateCopyEmailAddresses SecCertificateCopyKey SecCertificateCopyNormalizedIssuerSequence
        SecCertificateCopyNormalizedSubjectSequence SecCertificateCopySerialNumberData SecCertificateCopySubjectSummary
        SecCertificateCopyValues SecCertificateCreateWithData SecCertificateGetTypeID SecCodeCheckValidity
        SecCodeCopyGuestWithAttributes SecCodeCopyPath SecCodeCopySelf SecCopyErrorMessageString
        SecDecryptTransformCreate SecDigestTransformCreate SecEncryptTransformCreate SecIdentityCopyCertificate
        SecIdentityCopyPrivateKey SecIdentityCreateWithCertificate SecIdentityGetTypeID SecItemAdd SecItemCopyMatching
        SecItemDelete SecItemImport SecItemUpdate SecKeyCopyAttributes SecKeyCopyExternalRepresentation
        SecKeyCopyKeyExchangeResult SecKeyCopyPublicKey SecKeyCreateDecryptedData SecKeyCreateEncryptedData
        SecKeyCreateFromData SecKeyCreateRandomKey SecKeyCreateSignature SecKeyGetTypeID SecKeyVerifySignature
        SecKeychainAddGenericPassword SecKeychainAddInternetPassword SecKeychainCopyDefault SecKeychainCopyDomainDefault
        SecKeychainFindGenericPassword SecKeychainFindInternetPassword SecKeychainGetUserInteractionAllowed
        SecKeychainItemFreeContent SecKeychainItemModifyAttributesAndData SecKeychainSetUserInteractionAllowed
        SecKeychainUnlock SecPKCS12Import SecPolicyCreateBasicX509 SecPolicyCreateRevocation SecPolicyCreateSSL
        SecRandomCopyBytes SecRequirementCreateWithString SecStaticCodeCheckValidity SecStaticCodeCreateWithPath
        SecTransformExecute SecTransformSetAttribute SecTrustCopyAnchorCertificates SecTrustCopyPublicKey
        SecTrustCreateWithCertificates SecTrustEvaluate SecTrustEvaluateWithError SecTrustGetCertificateAtIndex
        SecTrustGetCertificateCount SecTrustGetNetworkFetchAllowed SecTrustSetAnchorCertificates
        SecTrustSetAnchorCertificatesOnly SecTrustSetOCSPResponse SecTrustSetVerifyDate SecTrustSettingsCopyCertificates
        SecTrustSettingsCopyTrustSettings SecTrustSettingsSetTrustSettings kSecAttrAccessControl kSecAttrAccessGroup
        kSecAttrAccessibleAfterFirstUnlock kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
        kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly kSecAttrAccessibleWhenUnlocked
        kSecAttrAccessibleWhenUnlockedThisDeviceOnly kSecAttrAccount kSecAttrApplicationLabel kSecAttrAuthenticationType
        kSecAttrComment kSecAttrDescription kSecAttrIsPermanent kSecAttrKeySizeInBits kSecAttrKeyType kSecAttrKeyTypeAES
        kSecAttrKeyTypeEC kSecAttrKeyTypeECSECPrimeRandom kSecAttrKeyTypeRSA kSecAttrLabel kSecAttrPath kSecAttrPort
        kSecAttrProtocol kSecAttrSecurityDomain kSecAttrServer kSecAttrService kSecAttrSynchronizable
        kSecAttrSynchronizableAny kSecAttrTokenID kSecAttrTokenIDSecureEnclave kSecClass kSecClassGenericPassword
        kSecClassInternetPassword kSecDigestHMACKeyAttribute kSecDigestSHA2 kSecEncryptionMode kSecGuestAttributeAudit
        kSecGuestAttributePid kSecIVKey kSecImportExportAccess kSecImportExportKeychain kSecImportExportPassphrase
        kSecImportItemCertChain kSecImportItemIdentity kSecImportItemKeyID kSecImportItemLabel kSecImportItemTrust
        kSecKeyKeyExchangeParameterRequestedSize kSecKeyKeyExchangeParameterSharedInfo kSecPaddingKey
        kSecPrivateKeyAttrs kSecPropertyKeyLabel kSecPropertyKeyType kSecPropertyKeyValue kSecPropertyTypeSection
        kSecPropertyTypeString kSecPublicKeyAttrs kSecReturnData kSecTransformInputAttributeName kSecUseKeychain
        kSecValueData kSecValueRef
    """,
    "SystemConfiguration": "SCDynamicStoreCopyComputerName",
}
TARGETS = "[x86_64-macos, arm64-macos]"


def stub(framework: str, symbols: list[str]) -> str:
    return f"""\
--- !tapi-tbd
tbd-version: 4
targets: {TARGETS}
install-name: /System/Library/Frameworks/{framework}.framework/Versions/A/{framework}
exports:
  - targets: {TARGETS}
    symbols: [{', '.join(f'_{symbol}' for symbol in symbols)}]
...
"""


def write(root: Path) -> Path:
    """Writes the stubs below a directory, where they lie as in an SDK."""
    for framework, symbols in SYMBOLS.items():
        folder = root / f"System/Library/Frameworks/{framework}.framework"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{framework}.tbd").write_text(stub(framework, symbols.split()))
    return root
